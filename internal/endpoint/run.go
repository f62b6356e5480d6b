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
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
	"gatehouse/internal/mark"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// maxTries is how many lost races make a CONFLICT (contract X4). The last try
// locks, on this node, the records over which the try before lost.
const maxTries = 3

// maxTime is how long all tries together may take (contract X6), so that the
// answer is out before the server's own timeouts. Each try also has the
// target's limit, which includes its commit and its waiting.
const maxTime = 45 * time.Second

// errTime means that a run's time ended before its commit.
var errTime = fault.New(fault.ExecutionTimeout, "the run did not finish in time; nothing was done")

// errSeen means that a delivery was processed before, by another try or node.
var errSeen = errors.New("this event was processed before")

// job is one execution that was requested.
type job struct {
	config    *access.Config
	caller    access.Viewer // zero for a webhook
	runAs     string        // a user's id, "" for none
	definedBy string
	slug      string          // "" outside of an endpoint
	auth      credential.Kind // "" outside of an endpoint
	target    custom.Target
	inputs    inputs.Object
	event     *event // nil unless a webhook was delivered
	requestID string
	holder    records.Holder // of the answer; nil where the outcome is not answered
	// dry runs the job and keeps nothing.
	dry bool
}

// Outcome is the result of a run.
type Outcome struct {
	Data []byte // JSON
	Meta []byte // JSON object, nil for none
	// Err is the failure, a *fault.Error if the caller may know it.
	Err   error
	Tries int

	Trace   jsontext.Value // of an automation; nil for none
	Console []component.Line
	CPU     time.Duration
	Wall    time.Duration
	UserID  user.ID // the user it ran as; "" if none was found
}

// execute runs a job until it is committed, has failed or has lost too many
// races, and records the run. It returns errSeen when the event was processed
// before.
func (s *Service) execute(ctx context.Context, j *job) *Outcome {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	began := s.clock.Now()
	var out *Outcome
	var cpu time.Duration
	var lost []string // the records that the previous try depended on
	for try := 1; ; try++ {
		x := &execution{s: s, j: j}
		if try == maxTries {
			x.wanted = lost
		}
		out, lost = x.try(ctx)
		out.Tries = try
		cpu += out.CPU
		if out.Err != nil && s.overtaken(ctx, j) {
			out.Err = errSeen
		}
		if !errors.Is(out.Err, records.ErrLost) {
			break
		}
		if try == maxTries {
			out.Err = fault.New(fault.Conflict, "the records that this run changes were changed by others, %d times in a row; nothing was done", maxTries)
			break
		}
		if err := s.renew(ctx, j); err != nil {
			out.Err = err
			break
		}
	}
	out.CPU = cpu
	if !j.dry {
		s.history.add(s.entry(j, out, began))
	}
	return out
}

// overtaken reports whether another node processed the job's event while this
// one ran it, so that this is why the run failed. It returns false where that
// cannot be determined.
func (s *Service) overtaken(ctx context.Context, j *job) bool {
	if j.event == nil || j.event.KeyHash == "" {
		return false
	}
	first, err := s.store.seen(ctx, j.config.Tenant.ID, j.slug, j.event.KeyHash)
	return err == nil && first != ""
}

// renew updates a job to the current configuration.
func (s *Service) renew(ctx context.Context, j *job) error {
	config, err := s.dir.Current(ctx, j.config.Tenant.ID)
	if err != nil || config == j.config {
		return err
	}
	if j.caller.UserID() != "" {
		if j.caller, err = s.dir.Renew(ctx, j.caller); err != nil {
			return err
		}
		config = j.caller.Config()
	}
	j.config = config
	return nil
}

// execution is one try: a unit of work and what runs on it.
type execution struct {
	s       *Service
	j       *job
	catalog *catalog
	unit    *records.Unit
	// wanted are the records that the try locks until it ends.
	wanted []string
	// until is when the target's time ends, the commit included.
	until time.Time

	actorKnown bool
	actorIs    access.Viewer
	actorErr   error

	console []component.Line
	cpu     time.Duration
	userID  user.ID
	failure *failure // the last failure of a component
}

// try runs the job once and commits it. touched are the records that it read by
// id or changed.
func (x *execution) try(ctx context.Context) (out *Outcome, touched []string) {
	begun := time.Now()
	out = &Outcome{}
	release, err := x.prepare(ctx)
	if err == nil {
		defer release()
		x.unit = x.s.records.Begin(x.j.config)
		defer x.unit.Close()
		mark.At("run.begun")
		err = x.run(ctx, out)
		mark.At("run.ended")
		out.Console, out.CPU, out.UserID = x.console, x.cpu, x.userID
		touched = x.touched()
	}
	if ended := ctx.Err(); ended != nil && err != nil && fault.CodeOf(err) == "" {
		err = over(ended)
	}
	if err == nil && x.j.holder != nil { // before the commit: afterwards it would be too late
		err = x.j.holder.Hold(len(out.Data))
	}
	if err == nil && !x.j.dry {
		err = x.commit(ctx, touched)
	}
	if err != nil {
		out.Err, out.Data, out.Meta = err, nil, nil // the run did nothing
	}
	out.Wall = time.Since(begun)
	return out, touched
}

// prepare loads what there is to run and waits for the wanted records, at most
// as long as the target may take.
func (x *execution) prepare(ctx context.Context) (release func(), err error) {
	if x.catalog, err = x.s.catalog(ctx, x.j.config); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, x.limit())
	defer cancel()
	release, err = x.s.locks.acquire(ctx, x.wanted, true)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return release, err
}

// limit returns how long the job's target may take.
func (x *execution) limit() time.Duration {
	if c := x.catalog.Components[x.j.target.Name]; c != nil && x.j.target.Kind == custom.ToComponent {
		return c.Timeout()
	}
	return component.DefaultTimeout
}

// touched returns the lock names of the records that the unit depends on.
func (x *execution) touched() []string {
	names := x.unit.Touched()
	for i, name := range names {
		names[i] = string(x.j.config.Tenant.ID) + "/" + name
	}
	return names
}

// commit commits the run's changes. It takes shared locks on the records that
// it depends on, unless the try has locked its wanted records exclusively: a
// try that holds locks does not wait for more.
func (x *execution) commit(ctx context.Context, touched []string) error {
	if !x.unit.Changed() && x.j.event == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	if len(x.wanted) == 0 {
		release, err := x.s.locks.acquire(ctx, touched, false)
		if errors.Is(err, context.DeadlineExceeded) {
			return errTime
		}
		if err != nil {
			return err
		}
		defer release()
	}
	return x.s.store.commit(ctx, x.unit, x.j, clock.Micros(x.s.clock.Now()))
}

// run runs the job's target.
func (x *execution) run(ctx context.Context, out *Outcome) (err error) {
	if x.j.target.Kind != custom.ToComponent {
		return x.automation(ctx, out)
	}
	out.Data, err = x.component(ctx, x.j.target.Name, x.j.inputs.JSON())
	return err
}

// over returns the error of a job whose time ended, or whose caller hung up.
func over(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.ExecutionTimeout, "the run did not finish in time")
	}
	return err
}

// actor returns the user a target runs as when it names none. It is determined
// once.
func (x *execution) actor(ctx context.Context) func() (access.Viewer, error) {
	return func() (access.Viewer, error) {
		if !x.actorKnown {
			x.actorIs, x.actorErr = x.s.actor(ctx, x.j)
			x.actorKnown = true
		}
		return x.actorIs, x.actorErr
	}
}

// as records which user the job's target runs as.
func (x *execution) as(viewer access.Viewer) {
	if x.userID == "" {
		x.userID = viewer.UserID()
	}
}

// component runs a logic component on the unit. Its inputs must have been
// checked.
func (x *execution) component(ctx context.Context, name string, given jsontext.Value) ([]byte, error) {
	c := x.catalog.Components[name]
	if c == nil {
		return nil, errNoTarget(custom.Target{Kind: custom.ToComponent, Name: name})
	}
	viewer, err := x.s.under(ctx, x.j.config, c.Context, x.actor(ctx))
	if err != nil {
		return nil, err
	}
	x.as(viewer)
	program, err := x.s.programs.of(ctx, x.j.config.Tenant.ID, c)
	if err != nil {
		return nil, err
	}
	mark.At("run.component")
	host, forget := x.host(viewer, component.ErrHostBytes)
	defer forget()
	res, err := program.Run(ctx, component.Run{
		Tenant: string(x.j.config.Tenant.ID), Inputs: given, Ctx: x.context(viewer), Timeout: c.Timeout(),
		Host: host,
	})
	x.until = time.Now().Add(c.Timeout() - res.Wall)
	x.console = append(x.console, res.Console...)
	x.cpu += res.CPU
	if err != nil {
		return nil, err
	}
	if res.Failed != nil {
		return nil, x.failed(name, res.Failed)
	}
	return res.Value, nil
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

// automation runs a flow on the unit, in one of the tenant's places for flows.
// A component in it additionally takes a place of the engine, never the other
// way round.
func (x *execution) automation(ctx context.Context, out *Outcome) error {
	f := x.catalog.flows[x.j.target.Name]
	if f == nil {
		return errNoTarget(x.j.target)
	}
	compiled, err := f.ready()
	if err != nil {
		return err
	}
	viewer, err := x.s.under(ctx, x.j.config, f.Context, x.actor(ctx))
	if err != nil {
		return err
	}
	x.as(viewer)
	// What the flow calls runs as the flow does, unless it has a context.
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
	until := time.Now().Add(component.DefaultTimeout)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	host, forget := x.host(viewer, automation.ErrRecords)
	defer forget()
	work, err := x.s.engine.Cores().Start(ctx, string(x.j.config.Tenant.ID))
	if err != nil {
		return over(err)
	}
	defer work.Stop()
	memory := x.s.engine.Memory().Charge(string(x.j.config.Tenant.ID))
	defer memory.Release()
	given := automation.Run{Inputs: x.j.inputs, Host: host, Work: work, Memory: &memory}
	if e := x.j.event; e != nil {
		given.Event = &automation.Event{ID: strings.ToValidUTF8(e.shownID(), "\uFFFD"), Kind: strings.ToValidUTF8(e.Kind, "\uFFFD")}
	}
	res, err := compiled.Run(ctx, given)
	x.until = until // not that of a component in the flow
	out.Trace = res.Trace.JSON()
	if fault.CodeOf(err) == fault.ExecutionTimeout && work.Starved() {
		err = errStarved
	}
	if err != nil {
		return x.placed(err)
	}
	out.Data = res.Outputs
	out.Meta = append(strconv.AppendInt([]byte(`{"nodesExecuted":`), int64(res.NodesExecuted), 10), `,"durationMs":`...)
	out.Meta = append(strconv.AppendInt(out.Meta, res.Duration.Milliseconds(), 10), '}')
	return nil
}

// errStarved means that a run did not finish in time because others used the
// processor.
var errStarved = fault.New(fault.Overloaded, "The service is too busy to finish this in time. Try again soon.").After(2 * time.Second)

// placed adds to a flow's failure the position in the source of the component
// that failed in it, if one did: a flow cannot catch such a failure.
func (x *execution) placed(err error) error {
	var f *fault.Error
	if x.failure == nil || !errors.As(err, &f) {
		return err
	}
	return &failure{fault: f, where: x.failure.where, stack: x.failure.stack}
}
