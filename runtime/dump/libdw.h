/* SPDX-License-Identifier: MIT */
/*
 * libdw - the functions of elfutils' library that weft uses.  The library is
 * loaded when it is first needed, so that libweft does not depend on it.
 */
#ifndef WEFT_RUNTIME_DUMP_LIBDW_H
#define WEFT_RUNTIME_DUMP_LIBDW_H

#include <elfutils/libdwfl.h>

#define WEFT__LIBDW(X)                 \
	X(dwarf_attr)                  \
	X(dwarf_cfi_addrframe)         \
	X(dwarf_formstring)            \
	X(dwarf_frame_cfa)             \
	X(dwarf_frame_info)            \
	X(dwarf_frame_register)        \
	X(dwarf_getsrc_die)            \
	X(dwarf_haspc)                 \
	X(dwarf_lineno)                \
	X(dwarf_linesrc)               \
	X(dwfl_addrmodule)             \
	X(dwfl_begin)                  \
	X(dwfl_build_id_find_debuginfo) \
	X(dwfl_end)                    \
	X(dwfl_linux_proc_find_elf)    \
	X(dwfl_linux_proc_report)      \
	X(dwfl_module_addrdie)         \
	X(dwfl_module_addrinfo)        \
	X(dwfl_module_dwarf_cfi)       \
	X(dwfl_module_eh_cfi)          \
	X(dwfl_module_info)            \
	X(dwfl_module_nextcu)          \
	X(dwfl_report_end)

struct weft__libdw {
#define WEFT__LIBDW_FIELD(name) __typeof__(name) *name;
	WEFT__LIBDW(WEFT__LIBDW_FIELD)
#undef WEFT__LIBDW_FIELD
};

/* NULL: the library cannot be loaded; *ret_why has the reason. */
const struct weft__libdw *weft__libdw(const char **ret_why);

#endif
