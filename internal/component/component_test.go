package component_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"gatehouse/internal/component"
	"gatehouse/internal/gatetest/enginecache"
)

var shared struct {
	once sync.Once
	e    *component.Engine
	err  error
}

// engine is shared by all tests that need no options of their own.
func engine(t testing.TB) *component.Engine {
	t.Helper()
	shared.once.Do(func() {
		shared.e, shared.err = component.NewEngine(context.Background(), component.Options{CacheDir: enginecache.Dir()})
		if shared.err == nil {
			shared.err = shared.e.Ready(context.Background())
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.e
}

func compile(t testing.TB, source string) *component.Program {
	t.Helper()
	p, err := engine(t).Compile(context.Background(), source)
	if err != nil {
		t.Fatalf("compile: %v\n%s", err, source)
	}
	return p
}

func run(t testing.TB, p *component.Program, r component.Run) *component.Result {
	t.Helper()
	result, err := p.Run(context.Background(), r)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return result
}

// value runs the body of a handler and returns its result.
func value(t testing.TB, body string) any {
	t.Helper()
	r := run(t, compile(t, "export default async function handler(inputs, ctx) {\n"+body+"\n}"), component.Run{Tenant: "t"})
	if r.Failed != nil {
		t.Fatalf("%s\nfailed: %+v", body, r.Failed)
	}
	var v any
	if err := json.Unmarshal(r.Value, &v); err != nil {
		t.Fatalf("%s\nreturned %s: %v", body, r.Value, err)
	}
	return v
}
