/* machine_windows.c: what Windows tells of the machine. Clocks and heat it tells no program without a driver's help. */
#define WIN32_LEAN_AND_MEAN
#include "machine.h"
#include "cli/system.h"
#include <math.h>
#include <stdio.h>
#include <windows.h>

static void narrow(const wchar_t *from, char *out, size_t room) {
    if (WideCharToMultiByte(CP_UTF8, 0, from, -1, out, (int)room, NULL, NULL) == 0) out[0] = 0;
}

void machine_names(machine *out) {
    wchar_t wide[128];
    DWORD length = sizeof wide / sizeof *wide, bytes = sizeof wide;
    OSVERSIONINFOW version = { .dwOSVersionInfoSize = sizeof version };
    LONG(WINAPI *tell_version)(OSVERSIONINFOW *); /* GetVersionEx tells what the program was made for */
    if (GetComputerNameExW(ComputerNameDnsHostname, wide, &length)) narrow(wide, out->name, sizeof out->name);
    if (system_find(GetModuleHandleW(L"ntdll"), "RtlGetVersion", &tell_version) && tell_version(&version) == 0)
        snprintf(out->os, sizeof out->os, "Windows %lu.%lu.%lu", version.dwMajorVersion, version.dwMinorVersion,
                 version.dwBuildNumber);
    if (RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0", L"ProcessorNameString",
                     RRF_RT_REG_SZ, NULL, wide, &bytes) == ERROR_SUCCESS)
        narrow(wide, out->cpu, sizeof out->cpu);
}

double machine_free_bytes(void) {
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    return GlobalMemoryStatusEx(&memory) ? (double)memory.ullAvailPhys : NAN;
}

double machine_free_gpu_bytes(const char *pci) {
    (void)pci;
    return NAN;
}

void machine_find_monitor(const char *pci, char *out, size_t room) {
    (void)pci, (void)room;
    out[0] = 0;
}

machine_reading machine_read_monitor(const char *hwmon, bool cpu) {
    (void)hwmon, (void)cpu;
    return (machine_reading){ NAN, NAN, NAN, NAN };
}
