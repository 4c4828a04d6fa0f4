/* route.c: --route: the devices that a program runs on, and which of its operations go to which. The GPU is the device
 * of
 * --device; beside it is the CPU. */
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

/* The route in the library's words: gpu is the plan's device 0 and cpu device 1; 60% is what the gpu has of the
 * rows. */
static int translate(cli_session *session, const char *text) {
    const size_t room = strlen(text) * 4 + 1; /* "=9%" becomes "=rows:9:91" */
    char *out = session->route = calloc(1, room);
    if (!out) return cli_fail(session->command, "no memory is left");
    for (const char *at = text;; at++) {
        const size_t item = strcspn(at, ",");
        const char *equals = memchr(at, '=', item), *word = equals ? equals + 1 : at + item;
        const size_t letters = (size_t)(at + item - word);
        const bool gpu = letters == 3 && memcmp(word, "gpu", 3) == 0, cpu = letters == 3 && memcmp(word, "cpu", 3) == 0;
        const bool share = letters > 0 && word[letters - 1] == '%';
        if (!gpu && !cpu && !share)
            return cli_usage(session->command,
                             "--route is auto, cpu, gpu, or a list such as matmul=gpu,v3-v9=60%%,rest=cpu, not \"%s\"",
                             text);
        const long percent = share ? strtol(word, NULL, 10) : 0;
        if (share && (percent < 1 || percent > 99))
            return cli_usage(session->command, "--route: a share is 1%% to 99%%, not \"%.*s\"", (int)letters, word);
        out += snprintf(out, room - (size_t)(out - session->route), "%.*s", (int)(word - at), at);
        if (share) out += snprintf(out, room - (size_t)(out - session->route), "rows:%ld:%ld", percent, 100 - percent);
        else *out++ = gpu ? '0' : '1';
        if (at[item]) *out++ = ',';
        *out = 0;
        at += item;
        if (*at == 0) return CLI_OK;
    }
}

int cli_route(cli_session *session, const cli_args *args, hd_plan_desc *inout_desc) {
    const char *text = cli_get(args, "--route"), *id = cli_get(args, "--device");
    if (!text) return cli_session_device(session, id);
    const bool all_cpu = strcmp(text, "cpu") == 0, all_gpu = strcmp(text, "gpu") == 0,
               automatic = strcmp(text, "auto") == 0;
    int code = all_cpu || all_gpu || automatic ? CLI_OK : translate(session, text);
    if (!code) code = cli_session_device(session, all_cpu ? "cpu" : id);
    if (code || all_cpu) return code;
    const hd_device_info *info = hd_device_get_info(session->device);
    if (info->kind == HD_DEVICE_CPU) { /* automatic: there is nothing to choose between */
        if (!automatic && hd_context_strict(session->context))
            return cli_fail(session->command, "--route %s: the device is %s, and no GPU; name one with --device", text,
                            info->id);
        if (!automatic)
            cli_note("heddle: --route %s: the device is %s, and no GPU: everything runs there\n", text, info->id);
        return CLI_OK;
    }
    if (all_gpu) return CLI_OK;
    if (hd_device_open(session->context, &(hd_device_desc){ .id = "cpu" }, &session->beside[0]))
        return cli_session_fail(session, "--route");
    inout_desc->beside = session->beside;
    inout_desc->beside_count = 1;
    inout_desc->route = automatic ? "auto" : session->route;
    return CLI_OK;
}

hd_status cli_session_stats(const cli_session *session, hd_device_stats *out) {
    /* all of its fields are counters */
    uint64_t sum[sizeof *out / sizeof(uint64_t)], more[sizeof *out / sizeof(uint64_t)];
    hd_device_stats of = { 0 };
    hd_status status = hd_device_get_stats(session->device, out);
    for (size_t d = 0; d < CLI_MOST_BESIDE && session->beside[d] && !status; d++) {
        status = hd_device_get_stats(session->beside[d], &of);
        memcpy(sum, out, sizeof sum);
        memcpy(more, &of, sizeof more);
        for (size_t i = 0; i < CLI_COUNT(sum); i++) sum[i] += more[i];
        memcpy(out, sum, sizeof sum);
    }
    return status;
}
