package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"gatehouse/bench/contact"
)

// Rows of the custom endpoints. The last two do the same work.
const (
	rowComponent  = "component"
	rowOrder      = "order component"
	rowSteps      = "component, 3 steps"
	rowAutomation = "automation, 3 nodes"
)

const custom = "/public/v1/custom"

// componentFile is the name in the manifest of the source of the component that books
// orders.
const componentFile = "book_order.js"

// endpointCall is a custom endpoint and the bodies that it is sent.
type endpointCall struct {
	row, path string
	body      func(n int) any
	answers   func(n int) string // is part of the answer to body n
}

// endpointContestant returns a contestant with the calls as its workloads. Each time it is
// started, every call is tried once, to make sure that the right answer is measured.
func endpointContestant(c *config, name, token string, start func(context.Context) (*server, error), calls []endpointCall) (contestant, error) {
	who := contestant{name: name, start: func(ctx context.Context) (*server, error) {
		s, err := start(ctx)
		if err != nil {
			return nil, err
		}
		for _, call := range calls {
			if err := call.try(ctx, s, token); err != nil {
				s.stop(syscall.SIGTERM)
				return nil, fmt.Errorf("%s of %s: %w", call.row, name, err)
			}
		}
		return s, nil
	}}
	for _, call := range calls {
		l, err := call.load(c, fileName(name+" "+call.row), token)
		if err != nil {
			return contestant{}, err
		}
		who.workloads = append(who.workloads, workload{call.row, l})
	}
	return who, nil
}

// gatehouseCalls are called by API key; the manifest has the endpoints.
func gatehouseCalls() []endpointCall {
	return []endpointCall{
		{rowComponent, custom + "/hello", greeting, greeted},
		{rowOrder, custom + "/order", newOrder, booked},
		{rowSteps, custom + "/contact", lead, known},
		{rowAutomation, custom + "/contact-flow", lead, known},
	}
}

// pocketCalls returns PocketBase's routes that do the same as the first two.
func pocketCalls() []endpointCall {
	return []endpointCall{
		{rowComponent, "/bench/hello", greeting, greeted},
		{rowOrder, "/bench/order", newOrder, booked},
	}
}

func greeting(n int) any {
	return map[string]any{"name": contact.Fields(n)["first_name"], "a": n, "b": n % 7}
}

func greeted(n int) string { return fmt.Sprintf(`"sum":%d`, n+n%7) }

func newOrder(n int) any { return newPurchase(n) }

func booked(n int) string {
	gross, _ := json.Marshal(newPurchase(n).gross()) // a finite number
	return `"gross":` + string(gross)
}

func lead(n int) any {
	fields := contact.Fields(2_000_000 + n)
	return map[string]any{"first_name": fields["first_name"], "last_name": fields["last_name"], "email": fields["email"], "city": fields["city"]}
}

func known(n int) string { return fmt.Sprintf(`"email":%q`, contact.Fields(2_000_000 + n)["email"]) }

// load prepares a thousand different bodies.
func (call endpointCall) load(c *config, name, token string) (load, error) {
	lines := make([]string, 1000)
	for n := range lines {
		body, err := json.Marshal(call.body(n))
		if err != nil {
			return load{}, err
		}
		lines[n] = "POST\t" + call.path + "\t" + string(body)
	}
	return prepareLoad(c, name, token, lines)
}

// tried is the body that a contestant is tried with.
const tried = 41

// try sends one body and checks the answer.
func (call endpointCall) try(ctx context.Context, s *server, token string) error {
	status, raw, err := post(ctx, s.base+call.path, token, call.body(tried))
	if err != nil {
		return err
	}
	if want := call.answers(tried); status != http.StatusOK || !strings.Contains(string(raw), want) {
		return fmt.Errorf("status %d, expected %s in the answer: %s", status, want, raw)
	}
	return nil
}

// endpoints returns the installation as the contestant of the custom endpoints.
func (g *instance) endpoints(token string) (contestant, error) {
	return endpointContestant(g.c, plainName, token, g.start, gatehouseCalls())
}

// endpoints is PocketBase with its JavaScript routes. They are called without a token,
// because these routes do not need one and checking it would take time.
func (p *pocketBase) endpoints() (contestant, error) {
	dir := filepath.Join(p.c.work, "pocketbase", "hooks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return contestant{}, err
	}
	if err := os.WriteFile(filepath.Join(dir, "bench.pb.js"), []byte(routesSource()), 0o600); err != nil {
		return contestant{}, err
	}
	start := func(ctx context.Context) (*server, error) { return p.start(ctx, serverCore, "-hooks", dir) }
	return endpointContestant(p.c, pocketName, "", start, pocketCalls())
}
