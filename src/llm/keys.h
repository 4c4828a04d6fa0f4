/* keys.h: the keys of a file while its figures are read. Every key that is asked for is noted, so that in the end each
 * key of the file was either asked for, or is on a list of keys.c; any other one is refused. */
#ifndef HDL_KEYS_H
#define HDL_KEYS_H

#include "llm/model.h"

enum { HDL_MOST_KEYS = 96 };
/* The first failure stays; what is read behind it is the fallback. */
typedef struct hdl_keys {
    hd_model   *model;
    hd_error   *error;
    hd_status   status;
    const char *asked[HDL_MOST_KEYS]; /* what follows "<architecture>." */
    uint32_t    asked_count;
} hdl_keys;

typedef struct hdl_key_name { char text[96]; } hdl_key_name;
/* Notes that the key "<architecture>.<rest>" is asked for; its whole name. */
hdl_key_name hdl_key_ask(hdl_keys *k, const char *rest);
/* It must be there. */
void hdl_key_need(hdl_keys *k, const char *rest);
uint32_t hdl_key_u32(hdl_keys *k, const char *rest, uint32_t low, uint32_t high, uint32_t fallback);
float hdl_key_f32(hdl_keys *k, const char *rest, float low, float high, float fallback);
bool hdl_key_bool(hdl_keys *k, const char *rest, bool fallback);
hdl_span hdl_key_text(hdl_keys *k, const char *rest, const char *fallback);
/* Refuses the file where a key that was not asked for may change the answers. */
void hdl_keys_check(hdl_keys *k);

/* ---- rope.c ---- */
/* The figures of rotary embedding. */
void hdl_rope_read(hdl_keys *k);

#endif
