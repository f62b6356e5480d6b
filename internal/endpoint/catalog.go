package endpoint

import (
	"context"
	"sync"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// catalog is what a tenant defined, ready to run. It does not change, except that
// a flow is compiled when it is first run.
type catalog struct {
	*custom.Definitions
	flows map[string]*flow
}

// flow is an automation, compiled on its first run.
type flow struct {
	*custom.Automation
	once     sync.Once
	schema   []inputs.Declaration
	outputs  []inputs.Declaration
	compiled *automation.Flow
	err      error
}

// catalogs keeps the catalog of a configuration.
var catalogs access.Derived[atomic.Pointer[catalog]]

// errUnknown is the answer to an unknown slug.
var errUnknown = fault.New(fault.NotFound, "there is nothing at this path")

// catalog returns what the tenant defined at the version of cfg, or at a later
// one. It is cached with cfg if the versions are equal. The error is OVERLOADED
// while the configuration changes too fast to be read, or one of the database.
func (s *Service) catalog(ctx context.Context, cfg *access.Config) (*catalog, error) {
	if kept := catalogs.Of(cfg).Load(); kept != nil {
		return kept, nil
	}
	d, version, err := s.store.definitions(ctx, cfg.Tenant.ID)
	if err != nil {
		return nil, err
	}
	c := &catalog{Definitions: d, flows: make(map[string]*flow, len(d.Automations))}
	for name, a := range d.Automations {
		c.flows[name] = &flow{Automation: a}
	}
	if version == cfg.Tenant.Version {
		catalogs.Of(cfg).Store(c)
	}
	return c, nil
}

// ready returns the compiled flow. It cannot fail for a flow that apply accepted.
func (f *flow) ready() (*automation.Flow, error) {
	f.once.Do(func() {
		def, problems := automation.Decode(f.Flow)
		if len(problems) > 0 {
			f.err = problems
			return
		}
		f.schema, f.outputs = def.InputSchema, def.Outputs
		f.compiled, problems = automation.Restore(def)
		if len(problems) > 0 {
			f.err = problems
		}
	})
	return f.compiled, f.err
}

// declared returns the inputs that a target declares, and whether it accepts
// undeclared ones, too. It returns NOT_FOUND when there is no such target.
func (c *catalog) declared(t custom.Target) (decls []inputs.Declaration, keep bool, err error) {
	if t.Kind == custom.ToComponent {
		component := c.Components[t.Name]
		if component == nil {
			return nil, false, errNoTarget(t)
		}
		return component.Inputs, true, nil
	}
	flow := c.flows[t.Name]
	if flow == nil {
		return nil, false, errNoTarget(t)
	}
	_, err = flow.ready()
	return flow.schema, false, err
}

func errNoTarget(t custom.Target) error {
	return fault.New(fault.NotFound, "there is no %s %q", t.Kind, t.Name)
}
