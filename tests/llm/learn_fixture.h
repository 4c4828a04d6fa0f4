/* Made by tools/fixtures/learn_fixture.py with tokenizers 0.23.3. Do not edit. */
enum { LEARN_VOCABULARY = 460, LEARN_TOKENS = 348 };
static const char learn_text[] =
    "A loom holds the warp threads under tension, so that the weft threads can be woven between them. The heddle lifts some of the warp\012"
    "threads, and lets the others down; between the two lies the shed, through which the shuttle carries the weft. Then the reed beats it\012"
    "against the cloth, the heddle changes, and it's the other threads' turn. 1,234 threads, 2,345 threads, 3,456 threads.\012"
    "\012"
    "  They're wound on a beam: what's woven is wound on another. Weavers don't count threads, they'd count repeats; we'll see.\012"
    "Der Webstuhl h\303\244lt die Kettf\303\244den; der Schu\303\237 geht durch das Fach. Les fils de cha\303\256ne sont tendus, le m\303\251tier \303\240 tisser les tient.\012"
    "\347\273\207\346\234\272\347\273\207\345\270\203\357\274\214\347\273\207\346\234\272\347\273\207\347\273\270\343\200\202 \360\237\247\265\360\237\247\265 banana bananas, aaaaaaa aaaaaaaaaaaa abababab\011tab\011tab\012"
    ;
static const char *const learn_merges[] = {
    "\304\240 t", "h e", "a a", "\304\240t he", "e a", "\304\240 w", "a n", "d s",
    "h r", "e n", "\304\240t hr", "ea ds", "\304\240 b", "\304\240 c", "\304\240 d", "aa aa",
    "\304\240thr eads", "a b", "e r", "l e", "\304\240 s", "o n", "o u", "\303\247 \302\273",
    "c h", "e s", "o t", "t s", "ou n", "\303\247\302\273 \304\251", "T he", "a r",
    "e t", "h a", "r e", "\304\240 i", "\304\240 l", "\304\240 an", "\304\240 le", "\304\240 The",
    "he d", "he r", "\304\240w e", "ab ab", "ot her", "' s", "3 4", "a s",
    "d le", "e en", "f t", "i es", "o m", "o v", "s t", "t ab",
    "u r", "w een", "\302\247 \302\265", "\302\272 \303\247\302\273\304\251", "\303\203 \302\244", "\303\246 \304\276", "\303\260 \305\201", "\304\240 W",
    "\304\240 h", "\304\240 aaaa", "\304\240 on", "\304\240 re", "\304\240 hed", "\304\240 other", "\304\240t i", "\304\240t en",
    "ea ts", "\304\240w oun", "\304\240w ar", "\304\240w ov", "an an", "\304\240b et", "\304\240b anan", "\304\240c oun",
    "\303\247\302\273\304\251 \303\246\304\276", "ha t", "\304\240i t", "\304\240an d", "\304\240we ft", "\303\260\305\201 \302\247\302\265", "\304\240hed dle", "\304\240woun d",
    "\304\240war p", "\304\240wov en", "\304\240bet ween", "\304\240coun t", "\303\247\302\273\304\251\303\246\304\276 \302\272\303\247\302\273\304\251",
};
