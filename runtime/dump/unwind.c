/* SPDX-License-Identifier: MIT */
/*
 * Unwinder - modules and symbols from libdw, cached by address; expressions of
 * the unwind tables; and the steps from frame to frame.
 */
#include "runtime/dump/unwind.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/dump/libdw.h"
#include "runtime/dump/snapshot.h"

enum { PLACES_FIRST = 1024, STACK_MAX = 8 };

/* The facts known of an address in the code; in the hash table `slots`. */
struct place {
	uint64_t pc;
	Dwarf_Frame *frame; /* how to step from here; or NULL */
	bool stepped;	    /* frame was looked up */
	bool named;	    /* symbol was */
	struct weft__symbol symbol;
};

struct weft__unwinder {
	const struct weft_allocator *memory;
	const struct weft__libdw *dw;
	Dwfl *modules;
	struct place **slots; /* by a hash of pc */
	size_t slots_count;   /* a power of two */
	size_t places_count;
};

/* ---- Modules ------------------------------------------------------------- */

/* Not dwfl_standard_find_debuginfo(), which may ask servers. */
static Dwfl *modules_find(const struct weft__libdw *dw)
{
	static Dwfl_Callbacks callbacks;
	Dwfl *modules;

	callbacks.find_elf = dw->dwfl_linux_proc_find_elf;
	callbacks.find_debuginfo = dw->dwfl_build_id_find_debuginfo;
	modules = dw->dwfl_begin(&callbacks);
	if (!modules)
		return NULL;
	if (dw->dwfl_linux_proc_report(modules, getpid()) == 0 &&
	    dw->dwfl_report_end(modules, NULL, NULL) == 0)
		return modules;
	dw->dwfl_end(modules);
	return NULL;
}

struct weft__unwinder *weft__unwinder_new(const struct weft_allocator *memory,
					  const char **ret_why)
{
	const struct weft__libdw *dw = weft__libdw(ret_why);
	struct weft__unwinder *u;

	if (!dw)
		return NULL;
	u = weft__memory_zeroed(memory, sizeof(*u));
	if (u)
		u->slots = weft__memory_zeroed(
			memory, PLACES_FIRST * sizeof(*u->slots));
	if (!u || !u->slots) {
		weft__memory_free(memory, u, sizeof(*u));
		*ret_why = "there is no memory";
		return NULL;
	}
	u->memory = memory;
	u->slots_count = PLACES_FIRST;
	u->dw = dw;
	u->modules = modules_find(dw);
	if (u->modules)
		return u;
	weft__unwinder_free(u);
	*ret_why = "libdw cannot read the process's modules";
	return NULL;
}

void weft__unwinder_free(struct weft__unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->slots_count; i++)
		if (u->slots[i]) {
			weft__memory_foreign_free(u->slots[i]->frame);
			weft__memory_free(u->memory, u->slots[i],
					  sizeof(*u->slots[i]));
		}
	weft__memory_free(u->memory, u->slots,
			  u->slots_count * sizeof(*u->slots));
	if (u->modules)
		u->dw->dwfl_end(u->modules);
	weft__memory_free(u->memory, u, sizeof(*u));
}

/* ---- Places -------------------------------------------------------------- */

static struct place **slot_of(struct place **slots, size_t count, uint64_t pc)
{
	size_t i = (size_t)(pc * 0x9e3779b97f4a7c15u >> 20) & (count - 1);

	while (slots[i] && slots[i]->pc != pc)
		i = (i + 1) & (count - 1);
	return &slots[i];
}

/* False: no memory. */
static bool slots_grow(struct weft__unwinder *u)
{
	size_t count = u->slots_count * 2;
	struct place **slots =
		weft__memory_zeroed(u->memory, count * sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < u->slots_count; i++)
		if (u->slots[i])
			*slot_of(slots, count, u->slots[i]->pc) = u->slots[i];
	weft__memory_free(u->memory, u->slots,
			  u->slots_count * sizeof(*slots));
	u->slots = slots;
	u->slots_count = count;
	return true;
}

static struct place *place_at(struct weft__unwinder *u, uint64_t pc)
{
	struct place **slot = slot_of(u->slots, u->slots_count, pc);

	if (*slot)
		return *slot;
	if (u->places_count * 2 >= u->slots_count) {
		if (!slots_grow(u))
			return NULL;
		slot = slot_of(u->slots, u->slots_count, pc);
	}
	*slot = weft__memory_zeroed(u->memory, sizeof(**slot));
	if (*slot) {
		(*slot)->pc = pc;
		u->places_count++;
	}
	return *slot;
}

static void place_frame(struct weft__unwinder *u, struct place *place)
{
	Dwfl_Module *module = u->dw->dwfl_addrmodule(u->modules, place->pc);
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi;

	place->stepped = true;
	if (!module)
		return;
	cfi = u->dw->dwfl_module_eh_cfi(module, &bias);
	if (cfi && u->dw->dwarf_cfi_addrframe(cfi, place->pc - bias,
					      &place->frame) == 0)
		return;
	place->frame = NULL;
	cfi = u->dw->dwfl_module_dwarf_cfi(module, &bias);
	if (!cfi || u->dw->dwarf_cfi_addrframe(cfi, place->pc - bias,
					       &place->frame) != 0)
		place->frame = NULL;
}

/* The compilation unit of an address.  Not every compiler writes the table that
 * libdw looks into. */
static Dwarf_Die *unit_of(struct weft__unwinder *u, Dwfl_Module *module,
			  uint64_t pc, Dwarf_Addr *ret_bias)
{
	Dwarf_Die *unit = u->dw->dwfl_module_addrdie(module, pc, ret_bias);

	if (unit)
		return unit;
	while ((unit = u->dw->dwfl_module_nextcu(module, unit, ret_bias)))
		if (u->dw->dwarf_haspc(unit, pc - *ret_bias) > 0)
			break;
	return unit;
}

static void place_line(struct weft__unwinder *u, Dwfl_Module *module,
		       struct place *place)
{
	struct weft__symbol *symbol = &place->symbol;
	Dwarf_Attribute attribute;
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit = unit_of(u, module, place->pc, &bias);
	Dwarf_Line *line = NULL;

	if (unit)
		line = u->dw->dwarf_getsrc_die(unit, place->pc - bias);
	if (!line || u->dw->dwarf_lineno(line, &symbol->line) != 0)
		return;
	symbol->file = u->dw->dwarf_linesrc(line, NULL, NULL);
	if (u->dw->dwarf_attr(unit, DW_AT_comp_dir, &attribute))
		symbol->directory = u->dw->dwarf_formstring(&attribute);
}

/* The module of an address.  libdw knows only what is mapped from the file;
 * variables that are zero at first lie behind that. */
static Dwfl_Module *module_of(struct weft__unwinder *u, uint64_t address)
{
	Dwfl_Module *module = u->dw->dwfl_addrmodule(u->modules, address);
	Dl_info info;

	if (!module && dladdr((void *)(uintptr_t)address, &info) != 0)
		module = u->dw->dwfl_addrmodule(
			u->modules, (uint64_t)(uintptr_t)info.dli_fbase);
	return module;
}

static void place_name(struct weft__unwinder *u, struct place *place)
{
	Dwfl_Module *module = module_of(u, place->pc);
	struct weft__symbol *symbol = &place->symbol;
	GElf_Off offset = 0;
	Dwarf_Addr begins = 0;
	GElf_Sym sym;

	place->named = true;
	if (!module)
		return;
	symbol->module = u->dw->dwfl_module_info(module, NULL, &begins, NULL,
						 NULL, NULL, NULL, NULL);
	symbol->name = u->dw->dwfl_module_addrinfo(module, place->pc, &offset,
						   &sym, NULL, NULL, NULL);
	symbol->begins = symbol->name ? place->pc - offset : begins;
	symbol->bytes = symbol->name ? sym.st_size : 0;
	place_line(u, module, place);
}

const struct weft__symbol *
weft__unwinder_symbol(struct weft__unwinder *u, uint64_t pc)
{
	struct place *place = u ? place_at(u, pc) : NULL;

	if (!place)
		return NULL;
	if (!place->named)
		place_name(u, place);
	return &place->symbol;
}

/* ---- Expressions --------------------------------------------------------- */

/* The state of an evaluation. */
struct scene {
	const struct weft__snapshot *snapshot;
	const struct weft__registers *at;
	uint64_t cfa; /* the frame's canonical address */
	uint64_t stack[STACK_MAX];
	unsigned height;
	bool value; /* the result is the value, not its address */
};

static bool read_word(const struct weft__snapshot *snapshot, uint64_t address,
		      uint64_t *ret_word)
{
	uint64_t offset = address - snapshot->base;

	if (offset + sizeof(*ret_word) > snapshot->bytes ||
	    offset > snapshot->bytes)
		return false;
	memcpy(ret_word, (const char *)snapshot->stack + offset,
	       sizeof(*ret_word));
	return true;
}

static bool read_register(const struct weft__registers *at, uint64_t number,
			  uint64_t *ret_word)
{
#if defined(__x86_64__)
	if (number == WEFT__REGISTERS) {
		*ret_word = at->pc;
		return true;
	}
#endif
	if (number >= WEFT__REGISTERS || !(at->known >> number & 1))
		return false;
	*ret_word = at->value[number];
	return true;
}

static bool push(struct scene *s, uint64_t word)
{
	if (s->height == STACK_MAX)
		return false;
	s->stack[s->height++] = word;
	return true;
}

static bool push_register(struct scene *s, uint64_t number, uint64_t offset)
{
	uint64_t word;

	return read_register(s->at, number, &word) && push(s, word + offset);
}

/* Combines the two topmost words into one. */
static bool combine(struct scene *s, unsigned atom)
{
	uint64_t a, b;

	if (s->height < 2)
		return false;
	b = s->stack[--s->height];
	a = s->stack[--s->height];
	switch (atom) {
	case DW_OP_plus:
		return push(s, a + b);
	case DW_OP_minus:
		return push(s, a - b);
	case DW_OP_and:
		return push(s, a & b);
	case DW_OP_shl:
		return push(s, b < 64 ? a << b : 0);
	case DW_OP_ge:
		return push(s, (int64_t)a >= (int64_t)b);
	default:
		return false;
	}
}

/* Handles the operators that compilers and linkers write into unwind tables. */
static bool operate(struct scene *s, const Dwarf_Op *op)
{
	uint64_t *top = s->height ? &s->stack[s->height - 1] : NULL;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(s, op->atom - DW_OP_breg0, op->number);
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(s, op->atom - DW_OP_lit0);
	switch (op->atom) {
	case DW_OP_bregx:
		return push_register(s, op->number, op->number2);
	case DW_OP_regx:
		s->value = true;
		return push_register(s, op->number, 0);
	case DW_OP_call_frame_cfa:
		return push(s, s->cfa);
	case DW_OP_plus_uconst:
		return top && (*top += op->number, true);
	case DW_OP_deref:
		return top && read_word(s->snapshot, *top, top);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(s, op->number);
	case DW_OP_stack_value:
		return s->value = true;
	default:
		return combine(s, op->atom);
	}
}

static bool evaluate(struct scene *s, const Dwarf_Op *ops, size_t count,
		     uint64_t *ret_word)
{
	s->height = 0;
	s->value = false;
	for (size_t i = 0; i < count; i++)
		if (!operate(s, &ops[i]))
			return false;
	if (s->height == 0)
		return false;
	*ret_word = s->stack[s->height - 1];
	return true;
}

/* ---- Steps --------------------------------------------------------------- */

/* The caller's value of a register; false: it is lost. */
static bool step_register(const struct weft__libdw *dw, Dwarf_Frame *frame,
			  struct scene *s, unsigned number, uint64_t *ret_word)
{
	Dwarf_Op memory[3], *ops;
	size_t count;

	if (dw->dwarf_frame_register(frame, (int)number, memory, &ops,
				     &count) != 0)
		return false;
	if (count == 0)
		return !ops && read_register(s->at, number, ret_word);
	if (!evaluate(s, ops, count, ret_word))
		return false;
	return s->value || read_word(s->snapshot, *ret_word, ret_word);
}

/* Whether a call preserves the register; not the stack pointer. */
static bool is_preserved(unsigned number)
{
#if defined(__x86_64__)
	return number == 3 || number == 6 || number >= 12;
#else
	return number >= 19 && number <= 30;
#endif
}

/* Steps to the caller of *at; false: there is none, or it cannot be found. */
static bool step_by_table(const struct weft__libdw *dw, Dwarf_Frame *frame,
			  const struct weft__snapshot *snapshot,
			  struct weft__registers *at)
{
	struct weft__registers caller = { .returns = true };
	struct scene s = { .snapshot = snapshot, .at = at };
	Dwarf_Op *ops;
	size_t count;
	bool interrupted = false;
	uint64_t word;
	int ra = dw->dwarf_frame_info(frame, NULL, NULL, &interrupted);

	if (ra < 0 || dw->dwarf_frame_cfa(frame, &ops, &count) != 0 ||
	    !evaluate(&s, ops, count, &s.cfa) ||
	    !step_register(dw, frame, &s, (unsigned)ra, &caller.pc))
		return false;
	for (unsigned i = 0; i < WEFT__REGISTERS; i++)
		if (is_preserved(i) && step_register(dw, frame, &s, i, &word))
			weft__register_set(&caller, i, word);
	weft__register_set(&caller, WEFT__REGISTER_SP, s.cfa);
	caller.returns = !interrupted;
	if (s.cfa <= at->value[WEFT__REGISTER_SP] && at->returns)
		return false;
	*at = caller;
	return true;
}

/* Steps through code without a table, as a program may generate it. */
static bool step_by_frame(const struct weft__snapshot *snapshot,
			  struct weft__registers *at)
{
	struct weft__registers caller = { .returns = true };
	uint64_t frame, outer;

	if (!read_register(at, WEFT__REGISTER_FRAME, &frame) ||
	    frame < at->value[WEFT__REGISTER_SP] ||
	    !read_word(snapshot, frame, &outer) ||
	    !read_word(snapshot, frame + 8, &caller.pc))
		return false;
	weft__register_set(&caller, WEFT__REGISTER_FRAME, outer);
	weft__register_set(&caller, WEFT__REGISTER_SP, frame + 16);
	*at = caller;
	return true;
}

static bool step(struct weft__unwinder *u, struct place *place,
		 const struct weft__snapshot *snapshot,
		 struct weft__registers *at)
{
	if (!place->stepped)
		place_frame(u, place);
	return place->frame ?
		       step_by_table(u->dw, place->frame, snapshot, at) :
		       step_by_frame(snapshot, at);
}

/* The address without its signature (PAC, aarch64). */
static uint64_t pc_plain(uint64_t pc)
{
#if defined(__x86_64__)
	return pc;
#else
	return pc & (((uint64_t)1 << 48) - 1);
#endif
}

unsigned weft__unwind(struct weft__unwinder *u,
		      const struct weft__snapshot *snapshot, uint64_t *ret_pcs,
		      unsigned max)
{
	struct weft__registers at = snapshot->at;
	struct place *place;
	unsigned count = 0;

	while (u && count < max && at.pc) {
		at.pc = pc_plain(at.pc);
		/* The call may be the last instruction of its function. */
		ret_pcs[count] = at.pc - at.returns;
		place = place_at(u, ret_pcs[count++]);
		if (!place || !step(u, place, snapshot, &at))
			break;
	}
	return count;
}
