# finetune.sh: `heddle train --export`, `heddle finetune`, adapters on a model and merged into it; a run that was stopped goes on to the same
# bits; wrong files and options. Figures and other devices: tests/train/test_lora.c and test_adapters.c.
. "$2/tests/cli/lib.sh"
export HEDDLE_DEVICE=cpu
model=$sources/tests/llm/models/qwen3_q4_0.gguf
i=0
while [ $i -lt 12 ]; do
    echo "{\"messages\": [{\"role\": \"user\", \"content\": \"a$i\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}"
    i=$((i + 1))
done >chats.jsonl
echo '{"prompt": "aa", "completion": "bb"}' >>chats.jsonl
echo '{"text": "a b"}' >>chats.jsonl
small="--template chatml --length 60 --batch 2 --rank 2 --math exact --seed 3 --rate 0.01"
hash_of() { sed -n 's/^hash  *//p' out; }

# A GPT as a GGUF file, at the end of its run and after it.
head -c 600 "$sources/README.md" >text
gpt="--layers 1 --width 16 --heads 2 --context 16 --batch 2 --steps 5"
expect 0 '^model       gpt.gguf$' - "$heddle" train text --out gpt $gpt --export gpt.gguf
expect 0 '^architecture  gpt2$' - "$heddle" info gpt.gguf
expect 0 '^In' - "$heddle" generate gpt.gguf -p In -n 5 --temp 0
expect 0 - - "$heddle" train text --out gpt --resume --export again.gguf
cmp -s gpt.gguf again.gguf || fail "the file of a run that had ended is another one"
expect 0 - - "$heddle" train text --out worded $gpt --tokenizer "$model" --export worded.gguf
expect 0 '^vocabulary    300 tokens, tokenizer gpt2$' - "$heddle" info worded.gguf
refuse 2 'leave --tokenizer out' "$heddle" train text --out new --tokenizer "$model" --tokens

# Adapters.
expect 0 '^adapter     a.gguf$' '^heddle: chats.jsonl: 14 samples, [0-9]+ tokens, of them [0-9]+ to learn; 0 too long, 0 left out$' \
    "$heddle" finetune "$model" chats.jsonl -o a.gguf --steps 20 --held-out chats.jsonl $small
straight=$(hash_of)
[ "$(wc -l <heddle-finetune/log.csv)" = 21 ] || fail "log.csv has no line for each step"
expect 0 - - "$heddle" finetune "$model" chats.jsonl -o peft --out other --steps 20 --recompute $small
[ "$(hash_of)" = "$straight" ] || fail "layers that are computed again came to other weights"
grep -q '"recompute": true' other/checkpoint-00000020/trainer.json || fail "the checkpoint forgot that layers are computed again"
expect 1 - 'takes [0-9.]+ [KM]iB, and with --micro-batch 1 --recompute [0-9.]+ [KM]iB; a smaller --length takes less$' \
    env HEDDLE_FAULT=alloc:1+:out-of-device-memory "$heddle" finetune "$model" chats.jsonl --out large --steps 2 $small
for file in adapter_config.json adapter_model.safetensors; do
    [ -s peft/$file ] || fail "the folder has no $file"
done
expect 0 - - "$heddle" finetune "$model" chats.jsonl -o packed.gguf --out packed --steps 2 --pack $small
[ "$(hash_of)" = "$straight" ] && fail "packed samples come to the same weights"
grep -q '"packed": true' packed/checkpoint-00000002/trainer.json || fail "the checkpoint does not tell of packed samples"
expect 0 - - "$heddle" finetune "$model" chats.jsonl -o packed.gguf --out packed --resume --pack --template chatml
refuse 1 'is not what the run in packed was trained on' "$heddle" finetune "$model" chats.jsonl --out packed --resume --template chatml --quiet
"$heddle" generate "$model" -p aa -n 20 --temp 0 --math exact --quiet >plain 2>err || fail "the model alone"
"$heddle" generate "$model" -p aa -n 20 --temp 0 --math exact --quiet --lora a.gguf >adapted 2>err || fail "with a GGUF adapter"
"$heddle" generate "$model" -p aa -n 20 --temp 0 --math exact --quiet --lora peft >adapted.peft 2>err || fail "with PEFT's folder"
cmp -s plain adapted && fail "an adapter changes nothing"
cmp -s adapted adapted.peft || fail "a GGUF adapter and PEFT's folder differ"
"$heddle" generate "$model" -p aa -n 20 --temp 0 --math exact --quiet --lora a.gguf=0 >none 2>err || fail "an adapter of no strength"
cmp -s plain none || fail "an adapter of no strength changes something"
expect 0 '^merged.gguf: ' "" "$heddle" merge "$model" --lora a.gguf --type f32 -o merged.gguf
expect 0 - - "$heddle" generate merged.gguf -p aa -n 20 --temp 0
expect 0 '^kept.gguf: .*q4_0' "" "$heddle" merge "$model" --lora peft -o kept.gguf

# Ended in the middle.
"$heddle" finetune "$model" chats.jsonl -o late.gguf --out late --steps 2000 --save-every 5 $small >out 2>err &
child=$!
tries=0
while [ -z "$(ls -d late/checkpoint-*[0-9] 2>/dev/null)" ] && [ $tries -lt 400 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
kill -INT $child
wait $child || fail "ended by Ctrl-C: exit code $?"
matches err '^heddle: ended after step [0-9]+; --resume goes on$' "Ctrl-C"
[ -s late.gguf ] || fail "Ctrl-C leaves no adapter"
refuse 2 '--resume goes on as the run began: leave --rank out' "$heddle" finetune "$model" chats.jsonl --out late --resume --rank 3
head -3 chats.jsonl >fewer.jsonl
refuse 1 'fewer.jsonl is not what the run in late was trained on' "$heddle" finetune "$model" fewer.jsonl --out late --resume --template chatml --quiet

refuse 2 '-o names the file' "$heddle" merge "$model" --lora a.gguf
refuse 2 '--lora names the adapter' "$heddle" merge "$model" -o x.gguf
refuse 1 'no type is called q9' "$heddle" merge "$model" --lora a.gguf --type q9 -o x.gguf
refuse 1 'the file is no adapter' "$heddle" generate "$model" --lora "$model" -p a
refuse 1 'the adapter is for qwen3, and the model is a gpt2' "$heddle" generate gpt.gguf --lora a.gguf -p a
refuse 2 'needs the path of an adapter' "$heddle" generate "$model" --lora =2 -p a
refuse 1 'nothing.jsonl cannot be opened' "$heddle" finetune "$model" nothing.jsonl --out new
echo '{"text": "a"' >broken.jsonl
refuse 1 'broken.jsonl, line 1: ' "$heddle" finetune "$model" broken.jsonl --out new
refuse 1 "the file has no chat template" "$heddle" finetune "$model" chats.jsonl --out new
refuse 1 "weight called 'attn_x'" "$heddle" finetune "$model" chats.jsonl --out new --targets attn_x --quiet $small
refuse 2 '--precision is f32 or bf16, not "ternary"' "$heddle" finetune "$model" chats.jsonl --out new --precision ternary $small --quiet
expect 0 - - "$heddle" finetune "$model" chats.jsonl -o b.gguf --out narrow --steps 4 --precision bf16 $small
grep -q '"precision": "bf16"' narrow/checkpoint-00000004/trainer.json || fail "the checkpoint forgot the precision"
expect 0 - - "$heddle" finetune "$model" chats.jsonl -o b.gguf --out narrow --resume --template chatml
done_here
