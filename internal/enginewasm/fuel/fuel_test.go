package fuel_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"gatehouse/internal/enginewasm"
	"gatehouse/internal/enginewasm/fuel"
)

// sample is a module with: an import nop() ; spin(n): a loop of n turns that
// calls nop; fill(n): memory.fill of n bytes; size() and grow(n).
func sample() []byte {
	section := func(id byte, body ...byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	function := func(code ...byte) []byte { return append([]byte{byte(len(code) + 1), 0}, code...) }
	bodies := [][]byte{
		function(0x03, 0x40, 0x10, 0, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b), // loop; call nop; n-1; br_if
		function(0x41, 0, 0x41, 7, 0x20, 0, 0xfc, 11, 0, 0x0b),
		function(0x3f, 0, 0x0b),
		function(0x20, 0, 0x40, 0, 0x0b),
	}
	code := []byte{byte(len(bodies))}
	for _, b := range bodies {
		code = append(code, b...)
	}
	export := func(name string, index byte) []byte {
		return append(append([]byte{byte(len(name))}, name...), 0, index)
	}
	exports := bytes.Join([][]byte{{4}, export("spin", 1), export("fill", 2), export("size", 3), export("grow", 4)}, nil)
	return bytes.Join([][]byte{
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 4, 0x60, 0, 0, 0x60, 1, 0x7f, 0, 0x60, 0, 1, 0x7f, 0x60, 1, 0x7f, 1, 0x7f),
		section(2, 1, 1, 'e', 3, 'n', 'o', 'p', 0, 0),
		section(3, 4, 1, 1, 2, 3),
		section(5, 1, 0, 2),
		section(6, 1, 0x7f, 1, 0x41, 5, 0x0b),
		section(7, exports...),
		section(10, code...),
		section(0, 4, 'n', 'a', 'm', 'e', 1),
	}, nil)
}

type world struct {
	ticks, nops int
	stop        int // tick at which the host stops it
	m           api.Module
}

var errStop = errors.New("stop")

func instantiate(t *testing.T, module []byte) *world {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	t.Cleanup(func() { _ = r.Close(ctx) })
	w := &world{}
	_, err := r.NewHostModuleBuilder(fuel.Module).
		NewFunctionBuilder().WithFunc(func(context.Context) uint32 {
		if w.ticks++; w.ticks == w.stop {
			panic(errStop)
		}
		return 10
	}).Export(fuel.Tick).
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, n uint32) uint32 {
		pages := m.ExportedGlobal(fuel.GlobalPages).(api.MutableGlobal)
		old := uint32(pages.Get())
		if old+n > 4 {
			return 0xffffffff
		}
		pages.Set(uint64(old + n))
		return old
	}).Export(fuel.Grow).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.NewHostModuleBuilder("e").NewFunctionBuilder().WithFunc(func() { w.nops++ }).Export("nop").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	if w.m, err = r.Instantiate(ctx, module); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) call(t *testing.T, name string, args ...uint64) uint64 {
	t.Helper()
	v, err := w.m.ExportedFunction(name).Call(context.Background(), args...)
	if err != nil {
		t.Fatal(name, err)
	}
	if len(v) == 0 {
		return 0
	}
	return v[0]
}

func TestRewrite(t *testing.T) {
	module, err := fuel.Rewrite(sample(), 8)
	if err != nil {
		t.Fatal(err)
	}
	w := instantiate(t, module)
	w.call(t, "spin", 1000)
	if w.nops != 1000 || w.ticks < 85 || w.ticks > 100 {
		t.Errorf("%d turns, %d ticks", w.nops, w.ticks)
	}
	w.ticks = 0
	for range 1000 {
		w.call(t, "fill", 1<<10) // eight turns' worth each
	}
	if w.ticks < 450 || w.ticks > 1000 {
		t.Errorf("%d ticks for a MiB", w.ticks)
	}
	if b, _ := w.m.Memory().Read(0, 1<<10); !bytes.Equal(b, bytes.Repeat([]byte{7}, 1<<10)) {
		t.Error("memory.fill did not fill")
	}
	if got := []uint64{w.call(t, "size"), w.call(t, "grow", 1), w.call(t, "size"), w.call(t, "grow", 2), w.call(t, "size")}; got[0] != 2 ||
		got[1] != 2 || got[2] != 3 || uint32(got[3]) != 0xffffffff || got[4] != 3 {
		t.Errorf("memory.size and grow: %v", got)
	}
	w.stop, w.ticks = 3, 0
	if _, err := w.m.ExportedFunction("spin").Call(context.Background(), 0); !errors.Is(err, errStop) {
		t.Errorf("an endless loop was not stopped: %v", err)
	}
}

func TestRewriteEngine(t *testing.T) {
	binary, err := enginewasm.Binary()
	if err != nil {
		t.Fatal(err)
	}
	a, err := fuel.Rewrite(binary, 512)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := fuel.Rewrite(binary, 512)
	if !bytes.Equal(a, b) {
		t.Error("two rewrites differ: the cache of compiled code would never be hit")
	}
}

// TestMalformed: what is cut off or changed is refused or rewritten, and never
// makes the rewriter crash.
func TestMalformed(t *testing.T) {
	module := sample()
	for n := range module[:len(module)-8] {
		if _, err := fuel.Rewrite(module[:n], 8); err == nil {
			t.Errorf("accepted the first %d of %d bytes", n, len(module))
		}
	}
	if _, err := fuel.Rewrite(module, 1); err == nil {
		t.Error("accepted a memory that is larger than its limit")
	}
}

func FuzzRewrite(f *testing.F) {
	f.Add(sample())
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x01\x010\x02\t\xff\xff\xff\xff000\x000\x03\x040000\x05\x03000\x06\x06000000" + // 4 billion imports
		"\a\x1d00000000000000000000000000000\n\x06000000"))
	f.Fuzz(func(_ *testing.T, module []byte) {
		_, _ = fuel.Rewrite(module, 8) // must return
	})
}
