/* test_doctor.c: what the doctor finds in systems that are made up: GPUs on a bus, the files of their drivers, who may open them. */
#define _DEFAULT_SOURCE
#include "cli/doctor.h"
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static char root[] = "/tmp/heddle-doctor-XXXXXX";

/* A file below the root, with the folders that it is in. */
static void put(const char *path, const char *text, mode_t mode) {
    char full[300];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(full, 0755);
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(full, mode);
}

static void put_gpu(const char *address, const char *vendor, const char *driver) {
    char path[300], target[300];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", address);
    put(path, "0x030200\n", 0644);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", address);
    put(path, vendor, 0644);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", address);
    put(path, "0x2335\n", 0644);
    if (!driver) return;
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/driver", root, address);
    snprintf(target, sizeof target, "../../../bus/pci/drivers/%s", driver);
    assert_int_equal(symlink(target, path), 0);
}

static int begin(void **state) {
    (void)state;
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    return mkdtemp(root) && chmod(root, 0755) == 0 ? 0 : -1;
}

static int end(void **state) {
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

/* The finding about a thing; fails where there is none. */
static const doctor_finding *about(const doctor_findings *all, const char *what) {
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->items[i].about, what) == 0) return &all->items[i];
    fail_msg("nothing is said about %s", what);
    return NULL;
}

static void expect(const doctor_findings *all, const char *what, doctor_level level, const char *text, const char *mend) {
    const doctor_finding *found = about(all, what);
    if (found->level != level || !strstr(found->text, text) || !strstr(found->mend, mend))
        fail_msg("%s: %d %s -> %s", what, (int)found->level, found->text, found->mend);
}

static void gpus_on_the_bus(void **state) {
    doctor_findings all = { 0 };
    (void)state;
    doctor_gpus(&all, root);
    expect(&all, "none", DOCTOR_NOTE, "no GPU", "CPU computes");
    free(all.items);
    all = (doctor_findings){ 0 };
    put_gpu("0000:01:00.0", "0x10de\n", "nvidia");
    put_gpu("0000:02:00.0", "0x10de\n", NULL);
    put_gpu("0000:03:00.0", "0x1002\n", "amdgpu");
    put("/sys/bus/pci/devices/0000:03:00.0/mem_info_vram_total", "17163091968\n", 0644);
    put("/sys/bus/pci/devices/0000:03:00.0/mem_info_vram_used", "1073741824\n", 0644);
    put_gpu("0000:04:00.0", "0x8086\n", "vfio-pci");
    put_gpu("0000:05:00.0", "0x1234\n", NULL); /* what QEMU shows a picture with */
    doctor_gpus(&all, root);
    assert_int_equal(all.count, 4);
    expect(&all, "0000:01:00.0", DOCTOR_PROBLEM,
           "NVIDIA 10de:2335 has the kernel driver nvidia, but there is no /dev/nvidiactl", "--gpus all");
    expect(&all, "0000:02:00.0", DOCTOR_PROBLEM, "no kernel driver", "install NVIDIA's driver");
    expect(&all, "0000:03:00.0", DOCTOR_PROBLEM, "no /dev/dri", "--device /dev/dri");
    expect(&all, "0000:04:00.0", DOCTOR_PROBLEM, "virtual machine", "give it back");
    free(all.items);
    all = (doctor_findings){ 0 };
    put("/dev/nvidiactl", "", 0666);
    put("/dev/dri/renderD128", "", 0666);
    doctor_gpus(&all, root);
    expect(&all, "0000:01:00.0", DOCTOR_OK, "kernel driver nvidia", "");
    expect(&all, "0000:03:00.0", DOCTOR_OK, "kernel driver amdgpu, 1.0 GiB used of 16.0 GiB", "");
    free(all.items);
}

/* As a user who is not root: access() lets root do everything. */
static int look_at_nodes(void) {
    doctor_findings all = { 0 };
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 2;
    doctor_nodes(&all, root);
    expect(&all, "/dev/dri/renderD128", DOCTOR_PROBLEM, "mode 600", "chmod a+rw");
    expect(&all, "/dev/dri/renderD129", DOCTOR_OK, "may read and write", "");
    expect(&all, "/dev/nvidia0", DOCTOR_OK, "may read and write", "");
    assert_int_equal(all.count, getuid() == 65534 ? 4 : 3);
    if (getuid() == 65534) expect(&all, "/dev/kfd", DOCTOR_PROBLEM, "mode 660", "usermod -aG");
    free(all.items);
    return 0;
}

static void files_that_users_may_open(void **state) {
    char path[300];
    int code = -1;
    (void)state;
    put("/dev/dri/renderD128", "", 0600);
    put("/dev/dri/renderD129", "", 0666);
    put("/dev/dri/card0", "", 0600); /* shows pictures; nobody computes by it */
    put("/dev/nvidia0", "", 0666);
    if (getuid() == 0) {
        put("/dev/kfd", "", 0660);
        snprintf(path, sizeof path, "%s/dev/kfd", root);
        assert_int_equal(chown(path, 0, 1), 0);
    } else snprintf(path, sizeof path, "%s/dev/dri/renderD128", root), chmod(path, 0);
    const pid_t child = fork();
    if (child == 0) _exit(look_at_nodes());
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static void driver_files(void **state) {
    doctor_findings all = { 0 };
    (void)state;
    unsetenv("VK_DRIVER_FILES"), unsetenv("VK_ICD_FILENAMES"), unsetenv("OCL_ICD_VENDORS"), unsetenv("HOME");
    doctor_drivers(&all, root);
    assert_true(all.count == 2 && all.levels[DOCTOR_NOTE] == 2);
    free(all.items);
    all = (doctor_findings){ 0 };
    put("/etc/vulkan/icd.d/gone.json", "{ \"ICD\": { \"library_path\": \"/nonexistent/libvulkan_gone.so\" } }", 0644);
    put("/usr/share/vulkan/icd.d/right.json", "{ \"ICD\": { \"library_path\": \"libc.so.6\" } }", 0644);
    put("/usr/share/vulkan/icd.d/broken.json", "{ \"ICD\": ", 0644);
    put("/usr/share/vulkan/icd.d/empty.json", "{}", 0644);
    put("/etc/OpenCL/vendors/gone.icd", "libOpenCL_gone.so.9\n", 0644);
    put("/etc/OpenCL/vendors/right.icd", "libc.so.6\n", 0644);
    put("/etc/OpenCL/vendors/empty.icd", "", 0644);
    put("/etc/OpenCL/vendors/README", "", 0644);
    doctor_drivers(&all, root);
    assert_int_equal(all.count, 7);
    expect(&all, "/etc/vulkan/icd.d/gone.json", DOCTOR_PROBLEM,
           "cannot be loaded: /nonexistent/libvulkan_gone.so", "install the driver anew");
    expect(&all, "/usr/share/vulkan/icd.d/right.json", DOCTOR_OK, "libc.so.6", "");
    expect(&all, "/usr/share/vulkan/icd.d/broken.json", DOCTOR_PROBLEM, "", "install the driver anew");
    expect(&all, "/usr/share/vulkan/icd.d/empty.json", DOCTOR_PROBLEM, "names no library", "install the driver anew");
    expect(&all, "/etc/OpenCL/vendors/gone.icd", DOCTOR_PROBLEM, "libOpenCL_gone.so.9", "install the driver anew");
    expect(&all, "/etc/OpenCL/vendors/right.icd", DOCTOR_OK, "libc.so.6", "");
    expect(&all, "/etc/OpenCL/vendors/empty.icd", DOCTOR_PROBLEM, "names no library", "install the driver anew");
    free(all.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gpus_on_the_bus, begin, end),
        cmocka_unit_test_setup_teardown(files_that_users_may_open, begin, end),
        cmocka_unit_test_setup_teardown(driver_files, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
