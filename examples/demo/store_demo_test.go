package demo_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/examples/demo"
	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// TestTheDemoCanBeMade provisions the demo tenant and creates every record.
func TestTheDemoCanBeMade(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, clk := context.Background(), clock.NewFake(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
		noEnv := func(string) string { return "" }
		result, err := manifest.Apply(ctx, d, clk, "manifest.yaml", demo.Manifest, noEnv, manifest.Options{Compile: compile(t)})
		if err != nil {
			t.Fatal(err)
		}
		if result.Tenant != demo.Tenant || len(result.Warnings) > 0 {
			t.Errorf("made %s, warned of %q", result.Tenant, result.Warnings)
		}
		list, err := demo.Records()
		if err != nil {
			t.Fatal(err)
		}
		dir := access.NewDirectory(d)
		config, err := dir.Current(ctx, demo.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		session := records.New(d, dir, clk, []byte("a key for cursors, in a test only")).As(access.System(config, "the demo"))
		ids, count := map[string]string{}, map[string]int{}
		for _, r := range list {
			members, err := membersOf(ctx, d, config, ids, r)
			if err != nil {
				t.Fatalf("%s: %v", r.Key, err)
			}
			out, err := session.Create(ctx, r.Entity, members)
			if err != nil {
				t.Fatalf("%s: %v", r.Key, err)
			}
			var made struct{ ID string }
			if err := json.Unmarshal(out, &made); err != nil {
				t.Fatal(err)
			}
			ids[r.Key] = made.ID
			count[r.Entity]++
		}
		for _, e := range config.Schema.Entities {
			if count[e.Name] < 100 {
				t.Errorf("there are only %d records of %s", count[e.Name], e.Name)
			}
		}
	})
}

// membersOf returns a record's members, with keys of other records resolved.
func membersOf(ctx context.Context, d *db.DB, c *access.Config, ids map[string]string, r demo.Record) ([]records.Member, error) {
	owner, err := user.ByEmail(ctx, d.For(demo.Tenant), r.Owner)
	if err != nil {
		return nil, err
	}
	members := []records.Member{{Name: "owner_id", Value: jsontext.Value(`"` + owner.ID + `"`)}}
	for name, value := range r.Fields {
		if f := c.Schema.Entity(r.Entity).Field(name); f != nil && f.Type == schema.Reference {
			value = json.RawMessage(`"` + ids[schema.Unquote(jsontext.Value(value))] + `"`)
		}
		members = append(members, records.Member{Name: name, Value: jsontext.Value(value)})
	}
	return members, nil
}

// compile compiles components as apply does.
func compile(t *testing.T) func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
	engine, err := component.NewEngine(t.Context(), component.Options{CacheDir: enginecache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context, tenant tenant.ID, module string, source component.Source) ([]string, error) {
		return engine.Check(ctx, string(tenant), module, source)
	}
}
