package fuel

// body appends a function's body, locals included, with its loops counted and
// its calls moved.
func (w *rewriter) body(b []byte, r *reader) []byte {
	for range r.u32() { // groups of locals
		r.u32()
		r.byte()
		if r.err != nil {
			return b
		}
	}
	b = append(b, r.b[:r.pos]...)
	depth := 1
	for depth > 0 && r.err == nil {
		from := r.pos
		op := r.byte()
		switch op {
		case 0x02, 0x03, 0x04, 0x0b: // block, loop, if, end
			if op == 0x0b {
				depth--
			} else {
				r.leb(5) // the block's type
				depth++
			}
			b = append(b, r.b[from:r.pos]...)
			if op == 0x03 {
				b = w.turn(b)
			}
		case 0x10, 0xd2: // call, ref.func
			b = appendU32(append(b, op), w.moved(r.u32()))
		case 0x3f: // memory.size
			r.byte()
			b = appendU32(append(b, 0x23), w.pagesG())
		case 0x40: // memory.grow
			r.byte()
			b = appendU32(append(b, 0x10), w.grow())
		case 0xfc:
			b = w.prefixed(b, r, from)
		default:
			immediates(r, op)
			if r.err == nil {
				b = append(b, r.b[from:r.pos]...)
			}
		}
	}
	if r.err == nil && r.pos != len(r.b) {
		r.fail("code behind the end")
	}
	return b
}

// turn appends code that uses fuel for one iteration of a loop.
func (w *rewriter) turn(b []byte) []byte {
	b = appendU32(append(b, 0x23), w.fuelG())
	b = append(b, 0x41, 1, 0x6b) // i32.const 1; i32.sub
	b = appendU32(append(b, 0x24), w.fuelG())
	return w.check(b)
}

// prefixed handles the opcodes after 0xfc: saturating conversions, bulk memory and
// tables.
func (w *rewriter) prefixed(b []byte, r *reader, from int) []byte {
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // i32.trunc_sat_f32_s and its kind
	case 10: // memory.copy
		r.bytes(2)
		return appendU32(append(b, 0x10), w.copyFn())
	case 11: // memory.fill
		r.byte()
		return appendU32(append(b, 0x10), w.fill())
	case 8, 12, 14: // memory.init, table.init, table.copy: bounded by the module's own data and tables
		r.u32()
		r.u32()
	case 9, 13, 16: // data.drop, elem.drop, table.size (table.grow and table.fill are refused)
		r.u32()
	default:
		r.fail("opcode 0xfc %d", op)
	}
	if r.err != nil {
		return b
	}
	return append(b, r.b[from:r.pos]...)
}

// immediates skips the immediates of an opcode without a prefix.
func immediates(r *reader, op byte) {
	switch {
	case op == 0x0c || op == 0x0d: // br, br_if
		r.u32()
	case op == 0x0e: // br_table
		for n := uint64(r.u32()) + 1; n > 0 && r.err == nil; n-- {
			r.u32()
		}
	case op == 0x11: // call_indirect
		r.u32()
		r.u32()
	case op == 0x1c: // select with types
		r.bytes(r.u32())
	case op >= 0x20 && op <= 0x26: // locals, globals, tables
		r.u32()
	case op >= 0x28 && op <= 0x3e: // loads and stores
		if align := r.u32(); align >= 0x40 {
			r.fail("a memory other than the first")
		}
		r.leb(5)
	case op == 0x41:
		r.leb(5)
	case op == 0x42:
		r.leb(10)
	case op == 0x43:
		r.bytes(4)
	case op == 0x44:
		r.bytes(8)
	case op == 0xd0: // ref.null
		r.byte()
	case op == 0x00, op == 0x01, op == 0x05, op == 0x0f, op == 0x1a, op == 0x1b, op == 0xd1:
	case op >= 0x45 && op <= 0xc4: // comparison, arithmetic, conversion
	default:
		r.fail("opcode %#x", op)
	}
}
