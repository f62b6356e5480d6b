package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"path/filepath"
	"syscall"
	"time"

	"gatehouse/bench/contact"
)

// contestant is one server of the throughput rounds, with its workloads.
type contestant struct {
	name      string
	start     func(context.Context) (*server, error)
	workloads []workload
}

// workload is one kind of request; row is its row in the table.
type workload struct {
	row  string
	load load
}

// Names of the contestants; the report puts them side by side.
const (
	floorName   = "floor"
	pocketName  = "PocketBase"
	plainName   = "Gatehouse"
	auditedName = "Gatehouse, audit persisted"
	pgPlainName = "Gatehouse on PostgreSQL"
)

// Rows of the throughput table.
const (
	rowRead   = "read one"
	rowList   = "list of 50"
	rowCreate = "create"
)

// warmUp is how many seconds of load a server gets before it is measured.
const warmUp = 1

// throughput measures the rates of all contestants in turns.
func throughput(ctx context.Context, c *config, rep *report) error {
	field, err := setUp(ctx, c)
	if err != nil {
		return err
	}
	for round := range c.rounds {
		for _, who := range field {
			if err := who.measure(ctx, c, rep, round); err != nil {
				return err
			}
		}
	}
	if !c.profile {
		return nil
	}
	for _, who := range field {
		if err := who.saveProfiles(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// setUp fills every contestant and captures the answers that the floor repeats.
func setUp(ctx context.Context, c *config) ([]contestant, error) {
	var field []contestant
	if c.peersOnly {
		if err := madeUpAnswers(c); err != nil {
			return nil, err
		}
		loads, err := floorLoads(c, "t", []string{"0199aa00-0000-7000-8000-000000000001"})
		if err != nil {
			return nil, err
		}
		field = append(field, floorContestant(c, loads))
	} else {
		own, err := setUpGatehouse(ctx, c)
		if err != nil {
			return nil, err
		}
		field = append(field, own...)
	}
	peer, err := setUpPocketBase(ctx, c)
	if err != nil {
		return nil, err
	}
	return append(field, peer...), nil
}

func floorContestant(c *config, workloads []workload) contestant {
	return contestant{name: floorName, start: func(ctx context.Context) (*server, error) { return startFloor(ctx, c) }, workloads: workloads}
}

// floorLoads returns the workloads that read, which the floor has, too.
func floorLoads(c *config, token string, ids []string) ([]workload, error) {
	var workloads []workload
	if c.wants("read") {
		l, err := prepareLoad(c, "gatehouse-read", token, gets(prefixed(contacts, ids)...))
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, workload{rowRead, l})
	}
	if c.wants("list") {
		l, err := prepareLoad(c, "gatehouse-list", token, gets(contacts+"?limit=50"))
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, workload{rowList, l})
	}
	return workloads, nil
}

// setUpGatehouse fills one installation and copies it: one is for reads, one for reads with
// audit persistence, two are for creates, one for custom endpoints, and one for External
// Identity.
func setUpGatehouse(ctx context.Context, c *config) ([]contestant, error) {
	plain := sqliteInstance(c, "gatehouse")
	token, ids, err := plain.prepareThroughput(ctx, true)
	if err != nil {
		return nil, err
	}
	reads, err := floorLoads(c, token, ids)
	if err != nil {
		return nil, err
	}
	field := []contestant{floorContestant(c, reads)}
	var creates []workload
	if c.wants("create") {
		l, err := createLoad(c, "gatehouse-create", token, contacts, nil)
		if err != nil {
			return nil, err
		}
		creates = []workload{{rowCreate, l}}
	}
	if c.wants("batch") {
		l, err := batchLoad(c, "gatehouse-batch", token, contacts+"/batch", gatehouseBatch)
		if err != nil {
			return nil, err
		}
		creates = append(creates, workload{rowBatch, l})
	}
	for _, v := range []struct {
		name, dir string
		audit     bool
		workloads []workload
	}{
		{plainName, "gatehouse-reads", false, reads},
		{auditedName, "gatehouse-audited", true, reads},
		{plainName, "gatehouse-creates", false, creates},
		{auditedName, "gatehouse-creates-audited", true, creates},
	} {
		if len(v.workloads) == 0 {
			continue
		}
		g, err := plain.copyAs(v.dir)
		if err != nil {
			return nil, err
		}
		if err := g.apply(ctx, v.audit); err != nil {
			return nil, err
		}
		field = append(field, contestant{name: v.name, start: g.start, workloads: v.workloads})
	}
	more, err := plain.special(ctx, token)
	return append(field, more...), err
}

// special returns copies of the installation for the custom endpoints and for External
// Identity, if they are to be measured.
func (g *instance) special(ctx context.Context, token string) (field []contestant, err error) {
	if g.c.wants("component") {
		own, err := g.copyAs("gatehouse-endpoints")
		if err != nil {
			return nil, err
		}
		called, err := own.endpoints(token)
		if err != nil {
			return nil, err
		}
		field = append(field, called)
	}
	if !g.c.wants("login") && !g.c.wants("jwt") {
		return field, nil
	}
	own, err := g.copyAs("gatehouse-identity")
	if err != nil {
		return nil, err
	}
	entered, err := own.identity(ctx)
	return append(field, entered...), err
}

// start serves the installation on the measured core.
func (g *instance) start(ctx context.Context) (*server, error) { return g.serve(ctx, serverCore) }

// prepareThroughput provisions and fills an installation with records of one
// user and returns that user's key and the ids that will be read. With
// forFloor it keeps the answers that the floor repeats.
func (g *instance) prepareThroughput(ctx context.Context, forFloor bool) (token string, ids []string, err error) {
	if err := g.apply(ctx, false); err != nil {
		return "", nil, err
	}
	if token, err = g.key(ctx, bulk); err != nil {
		return "", nil, err
	}
	s, err := g.serve(ctx, anyCore)
	if err != nil {
		return "", nil, err
	}
	defer s.stop(syscall.SIGTERM)
	all, err := g.fill(ctx, s, map[string]string{bulk: token}, g.c.records, func(n int) planned {
		return planned{owner: bulk, fields: contact.Fields(n)}
	})
	if err != nil {
		return "", nil, err
	}
	if ids = spread(all, 1000); !forFloor {
		return token, ids, nil
	}
	if _, p, err := timedList(ctx, s, contacts+"?limit=50", token); err != nil || len(p.Data) != 50 {
		return "", nil, fmt.Errorf("the list has %d records, not 50: %w", len(p.Data), err)
	}
	if err := capture(ctx, s, contacts+"/"+ids[0], token, g.c.oneFile()); err != nil {
		return "", nil, err
	}
	return token, ids, capture(ctx, s, contacts+"?limit=50", token, g.c.listFile())
}

// setUpPocketBase fills PocketBase; it takes creates in the same process as reads,
// and serves custom endpoints, with their JavaScript, in one of its own.
func setUpPocketBase(ctx context.Context, c *config) ([]contestant, error) {
	p := &pocketBase{c: c}
	s, err := p.start(ctx, anyCore)
	if err != nil {
		return nil, err
	}
	defer s.stop(syscall.SIGTERM)
	ids, err := p.ids(ctx, s, 1000)
	if err != nil {
		return nil, err
	}
	var workloads []workload
	add := func(part, row, file string, lines []string) error {
		if !c.wants(part) {
			return nil
		}
		l, err := prepareLoad(c, file, p.Token, lines)
		workloads = append(workloads, workload{row, l})
		return err
	}
	if err := add("read", rowRead, "pocketbase-read", gets(prefixed(pocketContacts, ids)...)); err != nil {
		return nil, err
	}
	if err := add("list", rowList, "pocketbase-list", gets(pocketList)); err != nil {
		return nil, err
	}
	if c.wants("create") {
		l, err := createLoad(c, "pocketbase-create", p.Token, pocketContacts, map[string]any{"owner": p.User})
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, workload{rowCreate, l})
	}
	if c.wants("batch") {
		l, err := batchLoad(c, "pocketbase-batch", p.Token, pocketBatches, p.batch)
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, workload{rowBatch, l})
	}
	if c.wants("login") {
		l, err := p.login(ctx, s)
		if err != nil {
			return nil, err
		}
		workloads = append(workloads, workload{rowLogin, l})
	}
	start := func(ctx context.Context) (*server, error) { return p.start(ctx, serverCore) }
	field := []contestant{{name: pocketName, start: start, workloads: workloads}}
	if !c.wants("component") {
		return field, nil
	}
	called, err := p.endpoints()
	return append(field, called), err
}

// createLoad prepares a thousand different records, each with the extra fields.
func createLoad(c *config, name, token, path string, extra map[string]any) (load, error) {
	var lines []string
	for n := range 1000 {
		fields := contact.Fields(1_000_000 + n)
		for field, value := range extra {
			fields[field] = value
		}
		body, err := json.Marshal(fields)
		if err != nil {
			return load{}, err
		}
		lines = append(lines, "POST\t"+path+"\t"+string(body))
	}
	return prepareLoad(c, name, token, lines)
}

// madeUpAnswers gives the floor answers of the right size when Gatehouse is not measured.
func madeUpAnswers(c *config) error {
	record := func(n int) map[string]any {
		fields := contact.Fields(n)
		fields["id"], fields["owner_id"] = fmt.Sprintf("0199aa00-0000-7000-8000-%012d", n), "0199aa00-0000-7000-8000-000000000000"
		fields["created_at"], fields["updated_at"] = "2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"
		return fields
	}
	var page []any
	for n := range 50 {
		page = append(page, record(n))
	}
	one, err := json.Marshal(map[string]any{"data": record(0), "meta": map[string]any{}})
	if err != nil {
		return err
	}
	list, err := json.Marshal(map[string]any{"data": page, "meta": map[string]any{"count": 50, "hasMore": true, "nextCursor": fmt.Sprintf("%0150d", 0)}})
	if err != nil {
		return err
	}
	if err := madeUp(c.oneFile(), one); err != nil {
		return err
	}
	return madeUp(c.listFile(), list)
}

// measure starts the contestant, runs every workload once and stops it.
func (who contestant) measure(ctx context.Context, c *config, rep *report, round int) error {
	if len(who.workloads) == 0 {
		return nil
	}
	s, err := who.start(ctx)
	if err != nil {
		return err
	}
	defer s.stop(syscall.SIGTERM)
	for _, q := range who.workloads {
		if _, err := q.load.send(ctx, c, s, warmUp); err != nil {
			return err
		}
		got, err := q.load.send(ctx, c, s, c.seconds)
		if err != nil {
			return err
		}
		log.Printf("round %d: %-19s %-26s %8.0f/s  p50 %6s  p99 %7s  core %3.0f %%", round+1, q.row, who.name,
			got.perSecond, got.p50.Round(10*time.Microsecond), got.p99.Round(10*time.Microsecond), 100*got.cpu)
		rep.add(q.row, who.name, got)
	}
	return nil
}

// saveProfiles runs every workload once more while the server takes a CPU profile, if it can.
func (who contestant) saveProfiles(ctx context.Context, c *config) error {
	if len(who.workloads) == 0 {
		return nil
	}
	s, err := who.start(ctx)
	if err != nil {
		return err
	}
	defer s.stop(syscall.SIGTERM)
	if s.ops == "" {
		return nil
	}
	for _, q := range who.workloads {
		file := filepath.Join(c.work, "profiles", fileName(q.row+" "+who.name)+".pprof")
		if err := q.load.sendProfiled(ctx, c, s, file); err != nil {
			return err
		}
		log.Printf("profile saved: %s", file)
	}
	return nil
}
