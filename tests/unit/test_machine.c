/* test_machine.c: what clocks, heat and throttling come to in a row, from readings as a system and NVIDIA's library give them. The
 * source is included, not linked: it belongs to the CLI, which is built only where its JSON library is. */
#define _GNU_SOURCE
#include "../../cli/machine.c"
#include "../../cli/machine_posix.c"
#include "../../cli/system_posix.c"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

/* A stand-in for the library: one GPU at one address. */
static unsigned clock_mhz, celsius;
static unsigned long long reasons;
static char gpu;
static int by_pci(const char *bus_id, void **out_device) {
    *out_device = &gpu;
    return strcmp(bus_id, "0000:01:00.0") == 0 ? 0 : 6;
}
static int read_clock(void *device, int type, unsigned *out) { return *out = clock_mhz, device == &gpu && type == NVML_CLOCK_SM ? 0 : 1; }
static int read_temperature(void *device, int which, unsigned *out) { return *out = celsius, device == &gpu && which == 0 ? 0 : 1; }
static int read_reasons(void *device, unsigned long long *out) { return *out = reasons, device == &gpu ? 0 : 1; }
static machine_nvml nvml = { .by_pci = by_pci, .clock = read_clock, .temperature = read_temperature, .throttle_reasons = read_reasons };

static void a_gpu_of_nvidia(void **state) {
    (void)state;
    const machine with = { .nvml = &nvml }, without = { .nvml = NULL };
    const hd_device_info info = { .pci = "0000:01:00.0", .kind = HD_DEVICE_DISCRETE_GPU };
    const machine_sensor sensor = machine_sensor_of(&with, &info);
    assert_ptr_equal(sensor.nvml_device, &gpu);
    table_row row = { 0 };
    clock_mhz = 1900, celsius = 40, reasons = 1; /* it was idle */
    const machine_reading before = machine_read(&sensor);
    clock_mhz = 1980, celsius = 61, reasons = 0;
    machine_reading after = machine_read(&sensor);
    machine_tell(&before, &after, &row);
    assert_true(row.clock_before_mhz == 1900 && row.clock_after_mhz == 1980 && row.temperature_c == 61 && row.throttled == 0);
    assert_string_equal(row.flag, ""); /* 4.2% */
    clock_mhz = 1200, reasons = 0x40; /* heat */
    after = machine_read(&sensor);
    machine_tell(&before, &after, &row);
    assert_true(row.throttled == 1);
    assert_string_equal(row.flag, "clocks");
    /* Not its address, or no library: nothing is known, and nothing is flagged. */
    const hd_device_info other = { .pci = "ffff:fe:1f.7", .kind = HD_DEVICE_DISCRETE_GPU };
    const machine_sensor sensors[] = { machine_sensor_of(&with, &other), machine_sensor_of(&without, &other) };
    for (size_t i = 0; i < 2; i++) {
        after = machine_read(&sensors[i]);
        machine_tell(&after, &after, &row);
        assert_true(isnan(row.clock_before_mhz) && isnan(row.clock_after_mhz) && isnan(row.temperature_c) && isnan(row.throttled));
        assert_string_equal(row.flag, "");
    }
}

static void a_processor_counts_its_throttling(void **state) {
    (void)state;
    const machine_reading before = { 3000, 50, NAN, 7 }, calm = { 2860, 60, NAN, 7 }, hot = { 2840, 95, NAN, 9 };
    table_row row = { 0 };
    machine_tell(&before, &calm, &row);
    assert_true(row.throttled == 0 && row.temperature_c == 60);
    assert_string_equal(row.flag, ""); /* 4.7% */
    machine_tell(&before, &hot, &row);
    assert_true(row.throttled == 1);
    assert_string_equal(row.flag, "clocks"); /* 5.3% */
}

static void this_machine(void **state) {
    (void)state;
    machine here;
    machine_open(&here, NULL);
    assert_true(here.name[0] && here.os[0]);
    assert_int_equal(strlen(here.time), strlen("2026-01-31T12:00:00Z"));
    machine_close(&here);
    machine_open(&here, "a name");
    assert_string_equal(here.name, "a name");
    if (!isnan(machine_free_bytes())) { /* of a small device no more is free than it has */
        const hd_device_info small = { .kind = HD_DEVICE_SOFTWARE, .memory_bytes = 1 };
        assert_true(machine_free_device_bytes(&here, &small) == 1);
    }
    machine_close(&here);
    assert_string_equal(cpuinfo_value("model name\t: A : B\n", "model name"), "A : B\n");
    assert_null(cpuinfo_value("model name2\t: A\n", "model name"));
    assert_null(cpuinfo_value("model name\n", "model name"));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_gpu_of_nvidia), cmocka_unit_test(a_processor_counts_its_throttling), cmocka_unit_test(this_machine) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
