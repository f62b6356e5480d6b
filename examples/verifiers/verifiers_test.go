// Package verifiers_test tests the webhook verifiers of this folder, as the product runs them,
// with deliveries signed by the providers' own libraries.
package verifiers_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/component"
	"gatehouse/internal/gatetest/enginecache"
)

var seed = flag.Uint64("seed", 1, "of the random deliveries and mutants")

// The size of the test.
const (
	perScheme = 30    // deliveries
	minCases  = 5_000 // in all
	now       = 1_750_000_000
)

// clock is the time that verifiers see, in seconds.
var clock atomic.Int64

// start starts the engine that all of these tests share, which runs until they end.
var start = sync.OnceValues(func() (*component.Engine, error) {
	return component.NewEngine(context.Background(), component.Options{
		CacheDir: enginecache.Dir(), Now: func() time.Time { return time.Unix(clock.Load(), 0) },
	})
})

// programs compiles the verifiers of schemes.
func programs(t *testing.T) map[string]*component.Program {
	t.Helper()
	var files []string
	for _, s := range schemes {
		files = append(files, s.file)
	}
	return compileAll(t, files...)
}

func compileAll(t *testing.T, files ...string) map[string]*component.Program {
	t.Helper()
	engine, err := start()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]*component.Program{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if compiled[file], err = engine.CompileFor(t.Context(), "acme", component.Source{Text: string(source)}); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return compiled
}

// verify runs a verifier as a signed endpoint does, with enough time for a busy machine.
func verify(ctx context.Context, p *component.Program, d *delivery, config []byte) (*component.Result, error) {
	headers, err := json.Marshal(d.Headers)
	if err != nil {
		return nil, err
	}
	return p.Run(ctx, component.Run{Tenant: "acme", Timeout: 10 * time.Second,
		Verifier: &component.VerifierInput{RawBody: d.Body, Headers: headers, Config: config, Request: d.Request}})
}

// tally counts what a verifier did.
type tally struct {
	accepted, rejected, falseAccepts, falseRejects int
	slowest                                        time.Duration
}

// runAll runs the cases on a few goroutines.
func runAll(t *testing.T, compiled map[string]*component.Program, cases []verdictCase) map[string]*tally {
	t.Helper()
	var mu sync.Mutex
	var next atomic.Int64
	var workers sync.WaitGroup
	tallies := map[string]*tally{}
	for range 4 {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(cases) {
					return
				}
				c := &cases[i]
				result, err := verify(t.Context(), compiled[c.file], c.d, c.config)
				if err == nil {
					err = c.judge(result)
				}
				mu.Lock()
				if tallies[c.file] == nil {
					tallies[c.file] = &tally{}
				}
				tallies[c.file].count(c, result, err)
				mu.Unlock()
				if err != nil {
					t.Errorf("%s, %s: %v\nheaders %q\nbody %.300q", c.file, c.name, err, c.d.Headers, c.d.Body)
				}
			}
		})
	}
	workers.Wait()
	return tallies
}

func (a *tally) count(c *verdictCase, result *component.Result, err error) {
	switch {
	case err != nil && c.accept:
		a.falseRejects++
	case err != nil:
		a.falseAccepts++
	case c.accept:
		a.accepted++
	default:
		a.rejected++
	}
	if result != nil {
		a.slowest = max(a.slowest, result.CPU)
	}
}

// judge returns an error that says how a result differs from the expected outcome. A
// rejection for the wrong reason is as wrong as none.
func (c *verdictCase) judge(r *component.Result) error {
	switch {
	case c.accept && r.Failed != nil:
		return fmt.Errorf("rejected: %s", r.Failed.Message)
	case c.accept:
		return c.event(r.Value)
	case r.Failed == nil:
		return fmt.Errorf("accepted: %.300s", r.Value)
	case !r.Failed.Chosen && (!c.thrown || r.Failed.Code != "EXECUTION_ERROR"):
		return fmt.Errorf("rejected by an accident: %s: %s", r.Failed.Code, r.Failed.Message)
	case !strings.Contains(r.Failed.Message, c.message):
		return fmt.Errorf("rejected with %q, want %q", r.Failed.Message, c.message)
	}
	return nil
}

func (c *verdictCase) event(text []byte) error {
	var got struct {
		ProviderEventID string `json:"providerEventId"`
		EventKind       string `json:"eventKind"`
		CanonicalEvent  any    `json:"canonicalEvent"`
	}
	var want any
	if c.d.Reply != nil {
		return equalJSON(text, []byte(`{"reply":`+string(c.d.Reply)+`}`))
	}
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	if err := json.Unmarshal(c.d.Event, &want); err != nil {
		return err
	}
	if got.ProviderEventID != c.id || got.EventKind != c.d.Kind {
		return fmt.Errorf("id %q and kind %q, want %q and %q", got.ProviderEventID, got.EventKind, c.id, c.d.Kind)
	}
	if !reflect.DeepEqual(got.CanonicalEvent, want) {
		return fmt.Errorf("event %.500v, want %.500v", got.CanonicalEvent, want)
	}
	return nil
}

// equalJSON returns an error if two JSON texts are not of equal values.
func equalJSON(got, want []byte) error {
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal(want, &b)); err != nil {
		return err
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("got %.500s, want %.500s", got, want)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
