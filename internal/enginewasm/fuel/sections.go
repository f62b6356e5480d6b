package fuel

import "fmt"

const (
	i32     = 0x7f
	mutable = 1
)

// section returns the new body of a section.
func (w *rewriter) section(s section) ([]byte, error) {
	r := &reader{b: s.body}
	switch s.id {
	case secType:
		return w.extend(r, 3, []byte{
			0x60, 0, 1, i32,
			0x60, 1, i32, 1, i32,
			0x60, 3, i32, i32, i32, 0,
		}), r.err
	case secImport:
		b := appendName(appendName(nil, Module), Tick)
		b = appendU32(append(b, 0), w.tickT())
		b = appendName(appendName(b, Module), Grow)
		b = appendU32(append(b, 0), w.growT())
		return w.extend(r, 2, b), r.err
	case secFunc:
		b := appendU32(nil, w.threeT())
		return w.extend(r, 2, appendU32(b, w.threeT())), r.err
	case secMemory:
		b := appendU32([]byte{1, 1}, w.pages)
		return appendU32(b, w.pages), nil
	case secGlobal:
		b := append(appendI32([]byte{i32, mutable, 0x41}, 0), 0x0b)
		b = append(b, i32, mutable, 0x41)
		return w.extend(r, 2, append(appendI32(b, int32(w.firstPage)), 0x0b)), r.err
	case secExport:
		return w.exports(r)
	case secStart:
		return appendU32(nil, w.moved(r.u32())), r.err
	case secElem:
		return w.elements(r)
	case secCode:
		return w.code(r)
	}
	return s.body, nil
}

// extend returns a vector section with n more entries at its end.
func (w *rewriter) extend(r *reader, n uint32, entries []byte) []byte {
	b := appendU32(nil, r.u32()+n)
	if r.err != nil {
		return nil
	}
	return append(append(b, r.b[r.pos:]...), entries...)
}

// exports moves the exported functions and adds the two globals.
func (w *rewriter) exports(r *reader) ([]byte, error) {
	n := r.u32()
	b := appendU32(nil, n+2)
	for range n {
		name := string(r.bytes(r.u32()))
		kind, index := r.byte(), r.u32()
		if kind == 0 {
			index = w.moved(index)
		}
		if r.err != nil {
			return nil, r.err
		}
		b = appendU32(append(appendName(b, name), kind), index)
	}
	b = appendU32(append(appendName(b, GlobalFuel), 3), w.fuelG())
	b = appendU32(append(appendName(b, GlobalPages), 3), w.pagesG())
	return b, r.err
}

// elements moves the functions in element segments. It refuses segments of
// expressions; the engine's compiler writes lists of indexes.
func (w *rewriter) elements(r *reader) ([]byte, error) {
	n := r.u32()
	b := appendU32(nil, n)
	for range n {
		from := r.pos
		flags := r.u32()
		if flags > 3 {
			return nil, fmt.Errorf("element segment of kind %d", flags)
		}
		if flags == 2 {
			r.u32() // table
		}
		if flags&1 == 0 { // active: the offset
			r.constExpr()
		}
		if flags != 0 {
			r.byte() // kind of element
		}
		if r.err != nil {
			return nil, r.err
		}
		b = append(b, r.b[from:r.pos]...)
		count := r.u32()
		b = appendU32(b, count)
		for range count {
			b = appendU32(b, w.moved(r.u32()))
			if r.err != nil {
				return nil, r.err
			}
		}
	}
	return b, r.err
}

// code rewrites every function, and adds the two that fill and copy memory for fuel.
func (w *rewriter) code(r *reader) ([]byte, error) {
	n := r.u32()
	if n != w.funcs-w.imports {
		return nil, fmt.Errorf("%d bodies for %d functions", n, w.funcs-w.imports)
	}
	b := appendU32(make([]byte, 0, len(r.b)+len(r.b)/8), n+2)
	var body []byte
	for i := range n {
		in := &reader{b: r.bytes(r.u32())}
		if r.err != nil {
			return nil, r.err
		}
		body = w.body(body[:0], in)
		if in.err != nil {
			return nil, fmt.Errorf("function %d: %w", i+w.imports, in.err)
		}
		b = append(appendU32(b, uint32(len(body))), body...)
	}
	for _, op := range [][]byte{{0xfc, 11, 0}, {0xfc, 10, 0, 0}} { // memory.fill, memory.copy
		body = w.charged(body[:0], op)
		b = append(appendU32(b, uint32(len(body))), body...)
	}
	return b, nil
}

// charged returns a function of three i32, the last a number of bytes, that uses
// fuel for them and then executes op.
func (w *rewriter) charged(b, op []byte) []byte {
	b = append(b, 0) // no locals
	b = appendU32(append(b, 0x23), w.fuelG())
	b = append(b, 0x20, 2, 0x41, bytesPerTurnShift, 0x76, 0x6b) // local 2 >> bytesPerTurnShift; sub
	b = appendU32(append(b, 0x24), w.fuelG())
	b = w.check(b)
	b = append(b, 0x20, 0, 0x20, 1, 0x20, 2)
	b = append(b, op...)
	return append(b, 0x0b)
}

// check appends code that calls the host when the fuel is below zero.
func (w *rewriter) check(b []byte) []byte {
	b = appendU32(append(b, 0x23), w.fuelG())
	b = append(b, 0x41, 0, 0x48, 0x04, 0x40) // i32.const 0; i32.lt_s; if
	b = appendU32(append(b, 0x10), w.tick())
	b = appendU32(append(b, 0x24), w.fuelG())
	return append(b, 0x0b)
}
