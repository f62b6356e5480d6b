package endpoint

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
)

// run runs the job's target.
func (x *execution) run(ctx context.Context, out *Outcome) (err error) {
	if x.j.target.Kind != custom.ToComponent {
		return x.automation(ctx, out)
	}
	res, err := x.component(ctx, x.j.target.Name, x.j.inputs.JSON())
	if err != nil {
		return err
	}
	if out.Data = res.Value; res.Responds {
		out.response, err = parseResponse(res.Value)
	}
	return err
}

// component runs a logic component on the unit. Its inputs must have been
// checked.
func (x *execution) component(ctx context.Context, name string, inputs jsontext.Value) (*component.Result, error) {
	c := x.catalog.Components[name]
	if c == nil {
		return nil, errNoTarget(custom.Target{Kind: custom.ToComponent, Name: name})
	}
	viewer, err := x.under(ctx, c.Context)
	if err != nil {
		return nil, err
	}
	x.as(viewer)
	program, err := x.program(ctx, c)
	if err != nil {
		return nil, err
	}
	failpoint.At("run.component")
	host, release := x.host(viewer, component.ErrHostBytes)
	defer release()
	res, err := program.Run(ctx, component.Run{
		Tenant: string(x.j.config.Tenant.ID), Inputs: inputs, Ctx: x.context(viewer), Timeout: c.Timeout(),
		Host: host,
	})
	x.until = time.Now().Add(c.Timeout() - res.Wall)
	for _, line := range res.Console {
		line.Component = name
		x.console = append(x.console, line)
	}
	x.cpu += res.CPU
	x.used.component(res.Used)
	if err != nil {
		return nil, err
	}
	if res.Failed != nil {
		return nil, x.failed(name, res.Failed)
	}
	return res, nil
}

// program returns the program of a component of the catalog. That of a draft is
// compiled already, and kept nowhere.
func (x *execution) program(ctx context.Context, c *custom.Component) (*component.Program, error) {
	if d := x.j.draft; d != nil && c == d.component {
		return d.program, nil
	}
	return x.s.programs.of(ctx, x.j.config.Tenant.ID, x.catalog.Definitions, c)
}

// failed returns a component's failure as the caller sees it: only fail()
// chooses a status of its own. The position in the source is for the author
// only.
func (x *execution) failed(name string, f *component.Failure) error {
	if f.Chosen {
		return f.Fault()
	}
	x.failure = &failure{
		fault: &fault.Error{Code: fault.Code(f.Code), Message: f.Message, Details: f.Details},
		where: name + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Column), stack: f.Stack,
	}
	return x.failure
}

// failure is a fault with details that only the run's record has.
type failure struct {
	fault        *fault.Error
	where, stack string
}

func (f *failure) Error() string { return f.fault.Error() }
func (f *failure) Unwrap() error { return f.fault }

// automation runs the job's flow on the unit, in one of the tenant's places for
// flows. A component in the flow takes a place of the engine as well. No
// component waits for a place for flows, so that there are no deadlocks.
func (x *execution) automation(ctx context.Context, out *Outcome) error {
	f := x.catalog.flows[x.j.target.Name]
	if f == nil {
		return errNoTarget(x.j.target)
	}
	compiled, err := f.ready()
	if err != nil {
		return err
	}
	viewer, err := x.under(ctx, f.Context)
	if err != nil {
		return err
	}
	x.as(viewer)
	// A component in the flow runs as the flow does, unless it has a context.
	x.actorIs, x.actorErr, x.actorKnown = viewer, nil, true
	if len(x.catalog.Components) > 0 { // a cold start does not count against the flow's time
		if err := x.s.engine.Ready(ctx); err != nil {
			return err
		}
	}
	leave, err := x.s.flows.Enter(ctx, string(x.j.config.Tenant.ID))
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "Too many automations are running. Try again soon.").After(time.Second)
	}
	if err != nil {
		return err
	}
	defer leave()
	return x.flow(ctx, compiled, viewer, out)
}

// flow runs a flow as viewer, within the time and memory that flows have.
func (x *execution) flow(ctx context.Context, compiled *automation.Flow, viewer access.Viewer, out *Outcome) error {
	until := time.Now().Add(component.DefaultTimeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	host, release := x.host(viewer, automation.ErrRecords)
	defer release()
	work, err := x.s.engine.Cores().Start(ctx, string(x.j.config.Tenant.ID))
	if err != nil {
		return timeoutFault(err)
	}
	defer work.Stop()
	work.Within(component.DefaultTimeout)
	memory := x.s.engine.Memory().Charge(string(x.j.config.Tenant.ID))
	defer memory.Release()
	run := automation.Run{Inputs: x.j.inputs, Host: host, Work: work, Memory: &memory}
	if e := x.j.event; e != nil {
		run.Event = &automation.Event{ID: strings.ToValidUTF8(e.shownID(), "\uFFFD"), Kind: strings.ToValidUTF8(e.Kind, "\uFFFD")}
	}
	res, err := compiled.Run(ctx, run)
	x.until = until // not that of a component in the flow
	out.Trace = res.Trace.JSON()
	out.Skipped = skippedOf(res)
	x.used.Nodes = res.NodesExecuted
	if fault.CodeOf(err) == fault.ExecutionTimeout && work.Starved() {
		err = errStarved
	}
	if err != nil {
		return x.withPosition(err)
	}
	out.Data = res.Outputs
	out.Meta = append(strconv.AppendInt([]byte(`{"nodesExecuted":`), int64(res.NodesExecuted), 10), `,"durationMs":`...)
	out.Meta = append(strconv.AppendInt(out.Meta, res.Duration.Milliseconds(), 10), '}')
	return nil
}

// errStarved means that a run did not finish in time because other runs used
// the processor.
var errStarved = fault.New(fault.Overloaded, "The service is too busy to finish this in time. Try again soon.").After(2 * time.Second)

// withPosition adds to a flow's failure the position in the source of the
// component that failed in it, if one did: a flow cannot catch such a failure.
func (x *execution) withPosition(err error) error {
	var f *fault.Error
	if x.failure == nil || !errors.As(err, &f) {
		return err
	}
	return &failure{fault: f, where: x.failure.where, stack: x.failure.stack}
}
