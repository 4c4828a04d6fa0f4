/* fit.c: `heddle fit`: the memory that a model will take, in exact bytes, before anything is loaded. */
#include "cli/llm.h"
#include <stdlib.h>

static void print_row(const char *what, uint32_t layers, uint64_t weights, uint64_t cache, uint64_t scratch,
                      uint64_t all) {
    cli_cell cells[4];
    cli_print("%-8s %6u  %12s %12s %12s %12s  %llu bytes\n", what, (unsigned)layers, cli_bytes(weights, cells[0]),
              cli_bytes(cache, cells[1]), cli_bytes(scratch, cells[2]), cli_bytes(all, cells[3]),
              (unsigned long long)all);
}

/* What the model shares with the one of --beside. */
static int find_shared(const cli_args *args, cli_llm *llm, uint64_t *out_bytes) {
    const char *path = cli_get(args, "--beside");
    hd_model *other = NULL;
    hd_status status = hd_model_open(llm->cli.context, path, NULL, &other);
    if (!status) status = hd_model_shared_bytes(llm->model, other, out_bytes);
    hd_model_close(other);
    return status ? cli_session_fail(&llm->cli, NULL) : CLI_OK;
}

static int report(const cli_args *args, cli_llm *llm, const cli_prompts *prompts) {
    const bool json = cli_get(args, "--json") != NULL, beside = cli_get(args, "--beside") != NULL;
    hd_fit fit;
    uint64_t shared = 0;
    if (hd_model_fit(llm->model, &llm->desc, &fit)) return cli_session_fail(&llm->cli, NULL);
    const int failed = beside ? find_shared(args, llm, &shared) : CLI_OK;
    if (failed) return failed;
    if (json) {
        bool ok = true;
        json_t *root = cli_llm_fit_json(&fit, &ok);
        if (beside) cli_put(root, "beside_shared_bytes", json_integer((json_int_t)shared), &ok);
        int code = prompts->count ? cli_prompts_tell(llm, prompts, fit.chunk, root, &ok) : CLI_OK;
        if (code) json_decref(root);
        else code = cli_print_json(llm->cli.command, root, ok);
        return code || fit.fits ? code : CLI_FAILED;
    }
    cli_cell bytes;
    cli_print("%-8s %6s  %12s %12s %12s %12s\n", "", "LAYERS", "WEIGHTS", "CACHE", "SCRATCH", "TOGETHER");
    if (fit.device_bytes)
        print_row("device", fit.device_layers, fit.device_weight_bytes, fit.device_cache_bytes,
                  fit.device_scratch_bytes, fit.device_bytes);
    if (fit.device_half_bytes)
        cli_print("%-8s %6s  %12s are copies in f16, by which prompts are read faster\n", "", "",
                  cli_bytes(fit.device_half_bytes, bytes));
    if (beside)
        cli_print("%-8s %6s  %12s are equal in the other model: on one device they lie once\n", "", "",
                  cli_bytes(shared, bytes));
    if (fit.streamed_layers)
        cli_print("%-8s %6u  travel to the device for every token\n", "streamed", (unsigned)fit.streamed_layers);
    if (fit.cpu_bytes)
        print_row("CPU", fit.cpu_layers, fit.cpu_weight_bytes, fit.cpu_cache_bytes, fit.cpu_scratch_bytes,
                  fit.cpu_bytes);
    if (fit.cpu_experts)
        cli_print("%-8s %6u  of the device's have their experts on the CPU\n", "", (unsigned)fit.cpu_experts);
    const hd_device_info *device = hd_device_get_info(llm->desc.device);
    if (fit.fits && fit.device_bytes == 0 && device->kind != HD_DEVICE_CPU)
        cli_print("fits: everything is on the CPU, and nothing on %s\n", device->name);
    else
        cli_print("%s: %s has %s\n", fit.fits ? "fits" : "does not fit", device->name,
                  cli_bytes(fit.device_memory_bytes, bytes));
    const int code = prompts->count ? cli_prompts_tell(llm, prompts, fit.chunk, NULL, NULL) : CLI_OK;
    return code || fit.fits ? code : CLI_FAILED;
}

static int run(const cli_args *args) {
    cli_llm llm = { 0 };
    cli_prompts prompts = { 0 };
    const char *path = cli_get(args, "--prompts");
    int code = path ? cli_prompts_read(args->command, path, &prompts) : CLI_OK;
    if (!code) code = cli_llm_open(args, &llm);
    if (!code) code = cli_llm_prepare(args, &llm);
    if (!code) code = report(args, &llm, &prompts);
    cli_llm_close(&llm);
    free(prompts.lengths);
    return code;
}

static const cli_option options[] = {
    { "--beside", "FILE", "another model on the device: tells how many bytes of weights are equal in both" },
    { "--prompts", "FILE", "lengths of prompts, one a line: finds the --pieces that suit them best" },
    CLI_OPTION_DRAFT, CLI_SESSION_OPTIONS, CLI_OPTION_JSON
};

const cli_command cli_fit = {
    "fit", "tells what memory a model will take, without loading it", "fit [MODEL.gguf] [--context N] [options]",
    "[MODEL.gguf]", options, CLI_COUNT(options),
    "The exit code is 1 where it does not fit.\n",
    "  heddle fit model.gguf --context 8192\n  heddle fit model.gguf --prompts lengths.txt\n", run,
};
