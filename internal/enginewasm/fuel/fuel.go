// Package fuel rewrites a WebAssembly module so that its host can stop it at any
// time, and bounds its memory.
//
//   - Every loop counts down a global; below zero it calls the import
//     gatehouse.tick, which returns the next supply (or does not return).
//     Code without loops ends by itself: it can only recurse, and the stack
//     is bounded.
//   - memory.fill and memory.copy, which may move megabytes in one
//     instruction, use fuel for each byte.
//   - memory.size and memory.grow do not access the real memory. The module
//     has its whole memory from the start (address space, which takes up no
//     memory before it is accessed) and counts the pages in use in a global
//     that only the host raises, in gatehouse.grow. So the host can enforce a
//     limit for each call and get memory back between calls, and the memory
//     never moves.
//
// The package supports what the engine needs: one memory, no threads, no SIMD, no
// exceptions. It refuses anything else.
package fuel

import (
	"bytes"
	"fmt"
)

// Names of what the rewritten module imports and exports.
const (
	Module      = "gatehouse"       // the import module
	Tick        = "tick"            // import: () -> i32, the next supply of fuel
	Grow        = "grow"            // import: (i32 pages) -> i32, the old number of pages or -1
	GlobalFuel  = "gatehouse_fuel"  // export: i32, mutable
	GlobalPages = "gatehouse_pages" // export: i32, mutable: pages in use
)

// bytesPerTurnShift is the logarithm of the number of filled or copied bytes that
// use as much fuel as one iteration of a loop.
const bytesPerTurnShift = 7

const (
	secType   = 1
	secImport = 2
	secFunc   = 3
	secMemory = 5
	secGlobal = 6
	secExport = 7
	secStart  = 8
	secElem   = 9
	secCode   = 10
)

// order is the position of each section in a module, by its id: 12, the data count,
// comes before the code.
var order = [...]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9, 12: 10, 10: 11, 11: 12}

type section struct {
	id   byte
	body []byte
}

// rewriter holds the numbers that the sections need from each other.
type rewriter struct {
	pages uint32 // of the whole memory

	types     uint32 // of the original module
	imports   uint32 // imported functions of the original
	funcs     uint32 // functions of the original, imports included
	globals   uint32 // globals of the original
	firstPage uint32 // pages in use at the start
	sections  map[byte]bool
}

// Indexes of the added functions, globals and types in the rewritten module.
func (w *rewriter) tick() uint32   { return w.imports }
func (w *rewriter) grow() uint32   { return w.imports + 1 }
func (w *rewriter) fill() uint32   { return w.funcs + 2 }
func (w *rewriter) copyFn() uint32 { return w.funcs + 3 }
func (w *rewriter) fuelG() uint32  { return w.globals }
func (w *rewriter) pagesG() uint32 { return w.globals + 1 }
func (w *rewriter) tickT() uint32  { return w.types }     // () -> i32
func (w *rewriter) growT() uint32  { return w.types + 1 } // (i32) -> i32
func (w *rewriter) threeT() uint32 { return w.types + 2 } // (i32 i32 i32) -> ()
func (w *rewriter) moved(f uint32) uint32 {
	if f < w.imports {
		return f
	}
	return f + 2 // after the two new imports
}

// Rewrite returns the module with fuel and a memory of pages × 64 KiB. It returns an
// error for a module that is malformed or uses a feature that the package does not
// support.
func Rewrite(module []byte, pages uint32) ([]byte, error) {
	sections, err := split(module)
	if err != nil {
		return nil, fmt.Errorf("fuel: %w", err)
	}
	w := &rewriter{pages: pages, sections: map[byte]bool{}}
	for _, s := range sections {
		w.sections[s.id] = true
	}
	for _, id := range []byte{secType, secImport, secFunc, secMemory, secGlobal, secExport, secCode} {
		if !w.sections[id] {
			return nil, fmt.Errorf("fuel: the module has no section %d", id)
		}
	}
	if err := w.measure(sections); err != nil {
		return nil, fmt.Errorf("fuel: %w", err)
	}
	out := bytes.NewBuffer(make([]byte, 0, len(module)+len(module)/8))
	out.Write(module[:8])
	for _, s := range sections {
		body, err := w.section(s)
		if err != nil {
			return nil, fmt.Errorf("fuel: section %d: %w", s.id, err)
		}
		out.WriteByte(s.id)
		out.Write(appendU32(nil, uint32(len(body))))
		out.Write(body)
	}
	return out.Bytes(), nil
}

// split returns a module's sections in their order, without the custom ones (names,
// debug information), which do not affect execution.
func split(module []byte) ([]section, error) {
	if len(module) < 8 || !bytes.Equal(module[:8], []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, fmt.Errorf("not a WebAssembly module of version 1")
	}
	r := &reader{b: module, pos: 8}
	var list []section
	last := 0
	for !r.done() {
		id := r.byte()
		body := r.bytes(r.u32())
		if r.err != nil || id == 0 {
			continue
		}
		if int(id) >= len(order) || order[id] == 0 {
			return nil, fmt.Errorf("unknown section %d", id)
		}
		if order[id] <= last {
			return nil, fmt.Errorf("section %d is out of order or there twice", id)
		}
		last = order[id]
		list = append(list, section{id, body})
	}
	return list, r.err
}

// measure counts what the module defines.
func (w *rewriter) measure(sections []section) error {
	for _, s := range sections {
		r := &reader{b: s.body}
		n := r.u32()
		switch s.id {
		case secType:
			w.types = n
		case secImport:
			for range n {
				if importEntry(r) == 0 {
					w.imports++
				}
				if r.err != nil {
					break
				}
			}
			w.funcs += w.imports
		case secFunc:
			w.funcs += n
		case secGlobal:
			w.globals = n
		case secMemory:
			if n != 1 {
				return fmt.Errorf("%d memories instead of one", n)
			}
			if flags := r.byte(); flags > 1 {
				return fmt.Errorf("memory of kind %d", flags)
			}
			w.firstPage = r.u32()
			if w.firstPage > w.pages {
				return fmt.Errorf("the module starts with %d pages, more than %d", w.firstPage, w.pages)
			}
		}
		if r.err != nil {
			return fmt.Errorf("section %d: %w", s.id, r.err)
		}
	}
	return nil
}

// importEntry reads one import and returns its kind. Only functions may be
// imported: an imported global or memory would shift what is added here.
func importEntry(r *reader) byte {
	r.bytes(r.u32())
	r.bytes(r.u32())
	kind := r.byte()
	if kind != 0 {
		r.fail("an import that is no function (kind %d)", kind)
		return kind
	}
	r.u32()
	return kind
}
