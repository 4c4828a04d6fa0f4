/* plan.c: saved plans: `heddle explain --save` writes them and `heddle run` runs them. */
#include "cli/cli.h"
#include "cli/text.h"
#include <stdlib.h>
#include <string.h>

const char *cli_plan_program(const char *saved) {
    static const char heading[] = "\nprogram\n";
    const char *at = strncmp(saved, "heddle plan ", 12) == 0 ? strstr(saved, heading) : NULL;
    return at ? at + sizeof heading - 1 : NULL;
}

int cli_plan_save(cli_session *session, const hd_plan *plan, const char *path) {
    size_t needed = 0;
    text page = { 0 };
    hd_plan_save(plan, NULL, 0, &needed);
    char *saved = malloc(needed + 1);
    int code = !saved ? cli_fail(session->command, "no memory is left")
               : hd_plan_save(plan, saved, needed, NULL) ? cli_session_fail(session, "--save") : CLI_OK;
    if (!code) text_append(&page, saved, strlen(saved));
    if (!code) code = cli_save(session->command, path, &page);
    text_free(&page);
    free(saved);
    return code;
}

/* The next "device ID" of the text from `at` on: its ID; NULL: none is left before the route. */
static const char *next_device(const char *at, char *id, size_t room) {
    const char *device = strstr(at, "\ndevice "), *route = strstr(at, "\nroute ");
    if (!device || !route || device > route) return NULL;
    device += strlen("\ndevice ");
    snprintf(id, room, "%.*s", (int)strcspn(device, "\n"), device);
    return device;
}

int cli_plan_devices(cli_session *session, const char *saved, hd_plan_desc *out_desc) {
    char id[64];
    const char *at = next_device(saved, id, sizeof id);
    if (!at) return cli_fail(session->command, "the saved plan names no device; save it anew");
    int code = cli_session_device(session, id);
    while (!code && (at = next_device(at, id, sizeof id)) && out_desc->beside_count < CLI_MOST_BESIDE)
        if (hd_device_open(session->context, &(hd_device_desc){ .id = id }, &session->beside[out_desc->beside_count++]))
            code = cli_session_fail(session, "the saved plan");
    out_desc->beside = session->beside;
    return code;
}
