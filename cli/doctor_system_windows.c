/* doctor_system_windows.c: the system around heddle, on Windows: its display adapters. Programs reach them by no files,
 * and drivers are told of where each loader looks: what they found is said of the back ends. */
#define WIN32_LEAN_AND_MEAN
#include "cli/doctor.h"
#include <windows.h>

void doctor_gpus(doctor_findings *to, const char *root) {
    DISPLAY_DEVICEW adapter = { .cb = sizeof adapter };
    char last[256] = "", name[256], id[256];
    (void)root;
    for (DWORD i = 0; EnumDisplayDevicesW(NULL, i, &adapter, 0); i++) { /* one for each screen that it could drive */
        if (WideCharToMultiByte(CP_UTF8, 0, adapter.DeviceString, -1, name, sizeof name, NULL, NULL) == 0 ||
            WideCharToMultiByte(CP_UTF8, 0, adapter.DeviceID, -1, id, sizeof id, NULL, NULL) == 0 ||
            strcmp(id, last) == 0)
            continue;
        doctor_add(to, DOCTOR_OK, "gpu", name, "%s", id[0] ? id : "no device of a bus");
        memcpy(last, id, sizeof last);
    }
}

void doctor_nodes(doctor_findings *to, const char *root) { (void)to, (void)root; }
void doctor_drivers(doctor_findings *to, const char *root) { (void)to, (void)root; }
