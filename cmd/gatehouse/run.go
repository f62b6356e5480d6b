package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// workshop is a tenant's database with what runs its components and automations.
type workshop struct {
	d         *db.DB
	config    *access.Config
	directory *access.Directory
	service   *endpoint.Service
	engine    *component.Engine
}

// workshop opens what a command needs to run a target; the caller closes it.
func (e *env) workshop(ctx context.Context, f *flags, tenantID tenant.ID) (*workshop, error) {
	d, err := e.open(ctx, f)
	if err != nil {
		return nil, err
	}
	w := &workshop{d: d}
	if w.directory, w.config, err = e.tenant(ctx, d, tenantID); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	keyring, err := e.keyring(ctx, f, d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if w.engine, err = e.engine(ctx, f); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	w.service = endpoint.New(d, endpoint.Options{
		Directory: w.directory, Records: records.New(d, w.directory, clock.System(), keyring.Derive("cursor", 32)), Engine: w.engine,
		Keyring: keyring, Clock: clock.System(), Emit: func(event string, fields map[string]any) { e.say("%s: %v", event, fields) },
	})
	return w, nil
}

// close writes the runs that were made.
func (w *workshop) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(w.service.Close(ctx), w.engine.Close(ctx), w.d.Close())
}

// runExec tries a component or an automation as a user, shows what it did and
// keeps nothing.
func runExec(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("run exec")
	tenantID := f.tenant()
	componentName := f.String("component", "", "`name` of a logic component")
	automationName := f.String("automation", "", "`name` of an automation")
	input := f.String("input", "", "`FILE` with the inputs as a JSON object; - is standard input")
	as := f.String("as", "", "e-mail `address` of the user it runs as")
	if err := f.Parse(args, "tenant", "input", "as"); err != nil {
		return err
	}
	target := custom.Target{Kind: custom.ToComponent, Name: *componentName}
	if *automationName != "" {
		target = custom.Target{Kind: custom.ToAutomation, Name: *automationName}
	}
	if (*componentName == "") == (*automationName == "") {
		return f.wrong("give one of --component and --automation")
	}
	_, body, err := e.readFile(*input)
	if err != nil {
		return err
	}
	w, err := e.workshop(ctx, f, *tenantID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	u, err := user.ByEmail(ctx, w.d.For(*tenantID), *as)
	if errors.Is(err, user.ErrUnknown) {
		return fault.New(fault.NotFound, "there is no user with the e-mail address %s", *as)
	}
	if err != nil {
		return err
	}
	viewer, err := w.directory.Viewer(ctx, w.config, u.ID, false)
	if err != nil {
		return err
	}
	out, err := w.service.Exec(ctx, w.config, viewer, target, body)
	if err != nil {
		return err
	}
	return e.printOutcome(out, "Nothing was kept.")
}

// outcomeLine is how a run ended, as it is printed.
type outcomeLine struct {
	Data       json.RawMessage  `json:"data"`
	Meta       json.RawMessage  `json:"meta,omitempty"`
	Error      *string          `json:"error"`
	Code       string           `json:"code,omitempty"`
	Trace      json.RawMessage  `json:"trace,omitempty"`
	Console    []component.Line `json:"console"`
	DurationMS float64          `json:"duration_ms"`
	CPUMS      float64          `json:"cpu_ms"`
}

// printOutcome prints how a run ended; a failed one is the command's failure too.
func (e *env) printOutcome(out *endpoint.Outcome, note string) error {
	line := outcomeLine{
		Data: out.Data, Meta: out.Meta, Trace: json.RawMessage(out.Trace), Console: out.Console,
		DurationMS: milliseconds(out.Wall.Microseconds()), CPUMS: milliseconds(out.CPU.Microseconds()),
	}
	if line.Console == nil {
		line.Console = []component.Line{}
	}
	if out.Err != nil {
		text := ""
		line.Code, text = endpoint.Describe(out.Err)
		line.Error = &text
	}
	if err := printJSON(e.stdout, line); err != nil {
		return err
	}
	if out.Err != nil {
		return fmt.Errorf("the run failed: %w", out.Err)
	}
	e.say("%s", note)
	return nil
}

func milliseconds(micros int64) float64 { return float64(micros) / 1000 }

// printJSON prints a value over several lines, for people and programs alike.
func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// runLine is a run in a list; runShow prints the rest as well.
type runLine struct {
	ID         string  `json:"id"`
	StartedAt  string  `json:"started_at"`
	Status     string  `json:"status"`
	Endpoint   *string `json:"endpoint"`
	Kind       string  `json:"kind"` // component or automation
	Target     string  `json:"target"`
	Auth       string  `json:"auth"`
	User       *string `json:"user"` // as whom it ran
	EventID    *string `json:"event_id"`
	RequestID  string  `json:"request_id"`
	Tries      int     `json:"tries"`
	DurationMS float64 `json:"duration_ms"`
	CPUMS      float64 `json:"cpu_ms"`
	ErrorCode  *string `json:"error_code"`
	Error      *string `json:"error"`
}

func lineOfRun(r *endpoint.Run, email func(id string) (*string, error)) (runLine, error) {
	who, err := email(string(r.UserID))
	return runLine{
		ID: r.ID, StartedAt: *instant(r.StartedAt), Status: r.Status, Endpoint: orNull(r.Slug), Kind: string(r.Target.Kind), Target: r.Target.Name,
		Auth: string(r.Auth), User: who, EventID: orNull(r.EventID), RequestID: r.RequestID, Tries: r.Tries, DurationMS: milliseconds(r.Took),
		CPUMS: milliseconds(r.CPU), ErrorCode: orNull(r.ErrorCode), Error: orNull(r.Error),
	}, err
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// emails finds users' e-mail addresses, each once; of one who is gone, the id.
func emails(ctx context.Context, d *db.DB, tenantID tenant.ID) func(id string) (*string, error) {
	known := map[string]*string{"": nil}
	return func(id string) (*string, error) {
		if email, ok := known[id]; ok {
			return email, nil
		}
		u, err := user.ByID(ctx, d.For(tenantID), user.ID(id))
		switch {
		case err == nil:
			known[id] = &u.Email
		case errors.Is(err, user.ErrUnknown):
			known[id] = &id
		default:
			return nil, err
		}
		return known[id], nil
	}
}

// runList prints runs, newest first.
func runList(ctx context.Context, e *env, args []string) error {
	f := e.flags("run list")
	tenantID := f.tenant()
	filter := endpoint.RunFilter{}
	f.StringVar(&filter.Slug, "slug", "", "only runs of the endpoint with this `slug`")
	f.BoolVar(&filter.Errors, "errors", false, "only runs that failed")
	f.StringVar(&filter.RequestID, "request-id", "", "only runs of the request with this `id`, as its answer's X-Request-Id has it")
	f.sinceVar(&filter.Since)
	f.IntVar(&filter.Limit, "limit", 100, "at most so many runs (0: all)")
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	filter.RequestID = strings.ToLower(filter.RequestID)
	if _, ok := clock.TimeOf(filter.RequestID); filter.RequestID != "" && !ok {
		return f.wrong("--request-id %s: expected the id that the answer's header X-Request-Id has", filter.RequestID)
	}
	if filter.Limit < 0 {
		return f.wrong("--limit %d: expected 0 or more", filter.Limit)
	}
	return e.onTenant(ctx, f, *tenantID, func(d *db.DB, _ *access.Config) error {
		var runs []*endpoint.Run
		err := endpoint.Runs(ctx, d, *tenantID, filter, func(r *endpoint.Run) error {
			r.Trace, r.Console = "", "" // which are large, and not printed
			runs = append(runs, r)
			return nil
		})
		if err != nil {
			return err
		}
		email := emails(ctx, d, *tenantID)
		l := &list{header: []string{"ID", "STARTED", "STATUS", "ENDPOINT", "TARGET", "USER", "MS", "ERROR"}}
		for _, r := range runs {
			line, err := lineOfRun(r, email)
			if err != nil {
				return err
			}
			l.add(line, line.ID, line.StartedAt, line.Status, textOf(line.Endpoint), line.Kind+" "+line.Target, textOf(line.User),
				strconv.FormatFloat(line.DurationMS, 'f', 1, 64), textOf(line.ErrorCode))
		}
		return l.print(e.stdout, *asJSON)
	})
}

// runShow prints one run with its trace and console.
func runShow(ctx context.Context, e *env, args []string) error {
	f := e.flags("run show")
	tenantID := f.tenant()
	id := f.String("id", "", "`id` of the run, as run list shows it")
	if err := f.Parse(args, "tenant", "id"); err != nil {
		return err
	}
	return e.onTenant(ctx, f, *tenantID, func(d *db.DB, _ *access.Config) error {
		r, err := endpoint.RunByID(ctx, d, *tenantID, *id)
		if err != nil {
			return err
		}
		line, err := lineOfRun(r, emails(ctx, d, *tenantID))
		if err != nil {
			return err
		}
		whole := struct {
			runLine
			Trace   json.RawMessage `json:"trace"`
			Console json.RawMessage `json:"console"`
		}{line, json.RawMessage("null"), json.RawMessage(r.Console)}
		if r.Trace != "" {
			whole.Trace = json.RawMessage(r.Trace)
		}
		return printJSON(e.stdout, whole)
	})
}

// runRetry runs a failed delivery again.
func runRetry(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("run retry")
	tenantID := f.tenant()
	id := f.String("id", "", "`id` of the failed run, as run list shows it")
	if err := f.Parse(args, "tenant", "id"); err != nil {
		return err
	}
	w, err := e.workshop(ctx, f, *tenantID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	out, already, err := w.service.Retry(ctx, w.config, *id)
	if err != nil {
		return err
	}
	if already {
		e.say("The event was processed meanwhile: nothing ran.")
		return nil
	}
	return e.printOutcome(out, "The delivery is processed.")
}
