/* option.c: the options of a request: which one is taken, and, for those who measure them, which there are. Pure. */
#include "kernels/kernel.h"

const char hdi_because_measured[] = "it was measured to be the fastest here";

/* The menu of a class, made where it is new; NULL where there is no room. */
static hdi_menu *menu_of(hdi_menus *menus, hdi_class of) {
    for (uint32_t i = 0; i < menus->count; i++)
        if (hdi_class_equal(menus->items[i].of, of)) return &menus->items[i];
    if (menus->count == HDI_MENUS) return NULL;
    hdi_menu *menu = &menus->items[menus->count++];
    *menu = (hdi_menu){ .of = of };
    return menu;
}

static void add_name(hdi_menu *menu, const char *name) {
    for (uint32_t i = 0; i < menu->count; i++)
        if (strcmp(menu->names[i], name) == 0) return;
    if (menu->count < HDI_MENU_OPTIONS) memcpy(menu->names[menu->count++], name, HDI_OPTION_NAME);
}

uint32_t hdi_option_choose(const hdi_request *request, hdi_menus *menus, hdi_class of, uint32_t count, hdi_option_fn name_of, const void *user) {
    const char *wanted = hdi_choices_find(&request->caps->choices, of);
    hdi_menu *menu = NULL;
    if (request->math == HD_MATH_EXACT || (!wanted && !menus)) return 0;
    if (menus) menu = menu_of(menus, of);
    for (uint32_t nth = 0; nth < count; nth++) {
        char name[HDI_OPTION_NAME] = { 0 };
        if (!name_of(user, nth, name)) continue;
        if (menu) add_name(menu, name);
        if (wanted && strcmp(wanted, name) == 0) return nth; /* a menu is for those who choose nothing */
    }
    return 0;
}
