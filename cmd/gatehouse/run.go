package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// onRuntime is onTenant with the service that runs components and automations. It
// stores the runs that do made before it returns.
func (f *flags) onRuntime(ctx context.Context, do func(*tenantDB, *endpoint.Service) error) error {
	return f.onTenant(ctx, func(t *tenantDB) (err error) {
		keyring, err := f.keyring(ctx, t.DB)
		if err != nil {
			return err
		}
		engine, err := f.engine(ctx)
		if err != nil {
			return err
		}
		s := endpoint.New(t.DB, endpoint.Options{
			Directory: t.directory, Records: records.New(t.DB, t.directory, clock.System(), keyring.Derive("cursor", 32)), Engine: engine,
			Keyring: keyring, Clock: clock.System(), Emit: func(event string, fields map[string]any) { f.say("%s: %v", event, fields) },
		})
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			err = errors.Join(err, s.Close(ctx), engine.Close(ctx))
		}()
		return do(t, s)
	})
}

// runExec tries a component or an automation as a user and prints what it did. It
// stores nothing.
func runExec(f *flags) action {
	f.forTenant()
	componentName := f.String("component", "", "`name` of a logic component")
	automationName := f.String("automation", "", "`name` of an automation")
	input := f.required("input", "`FILE` with the inputs as a JSON object; - is standard input")
	as := f.required("as", "e-mail `address` of the user it runs as")
	return func(ctx context.Context) error {
		target := custom.Target{Kind: custom.ToComponent, Name: *componentName}
		if *automationName != "" {
			target = custom.Target{Kind: custom.ToAutomation, Name: *automationName}
		}
		if (*componentName == "") == (*automationName == "") {
			return f.wrong("give one of --component and --automation")
		}
		_, body, err := f.readFile(*input)
		if err != nil {
			return err
		}
		return f.onRuntime(ctx, func(t *tenantDB, s *endpoint.Service) error {
			u, err := t.user(ctx, *as)
			if err != nil {
				return err
			}
			viewer, err := t.directory.Viewer(ctx, t.config, u.ID, false)
			if err != nil {
				return err
			}
			out, err := s.Exec(ctx, t.config, viewer, target, body)
			if err != nil {
				return err
			}
			return f.printOutcome(out, "Nothing was kept.")
		})
	}
}

// outcomeLine is the outcome of a run, as it is printed.
type outcomeLine struct {
	Data       json.RawMessage  `json:"data"`
	Meta       json.RawMessage  `json:"meta,omitempty"`
	Error      *string          `json:"error"`
	Code       string           `json:"code,omitempty"`
	Details    json.RawMessage  `json:"error_details,omitempty"` // which fields were wrong, for instance
	Trace      json.RawMessage  `json:"trace,omitempty"`
	Skipped    string           `json:"skipped,omitempty"` // what a flow left out
	Console    []component.Line `json:"console"`
	DurationMS float64          `json:"duration_ms"`
	CPUMS      float64          `json:"cpu_ms"`
}

// printOutcome prints the outcome of a run. It returns an error for a failed run.
func (e *env) printOutcome(out *endpoint.Outcome, note string) error {
	line := outcomeLine{
		Data: out.Data, Meta: out.Meta, Trace: json.RawMessage(out.Trace), Skipped: out.Skipped.String(), Console: out.Console,
		DurationMS: milliseconds(out.Wall.Microseconds()), CPUMS: milliseconds(out.CPU.Microseconds()),
	}
	if line.Console == nil {
		line.Console = []component.Line{}
	}
	if out.Err != nil {
		text := ""
		line.Code, text = endpoint.Describe(out.Err)
		line.Error, line.Details = &text, endpoint.Details(out.Err)
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

// runLine is a run in a list; runShow prints the rest as well.
type runLine struct {
	ID         string  `json:"id"`
	StartedAt  string  `json:"started_at"`
	Status     string  `json:"status"`
	Skipped    *string `json:"skipped"` // what a flow left out
	Endpoint   *string `json:"endpoint"`
	Kind       string  `json:"kind"` // component or automation
	Target     string  `json:"target"`
	Auth       string  `json:"auth"`
	User       *string `json:"user"` // the user it ran as
	EventID    *string `json:"event_id"`
	RequestID  string  `json:"request_id"`
	Tries      int     `json:"tries"`
	DurationMS float64 `json:"duration_ms"`
	CPUMS      float64 `json:"cpu_ms"`
	ErrorCode  *string `json:"error_code"`
	Error      *string `json:"error"`
}

func lineOfRun(r *endpoint.Run, emailOf func(user.ID) (string, error)) (runLine, error) {
	email, err := emailOf(r.UserID)
	return runLine{
		ID: r.ID, StartedAt: *instant(r.StartedAt), Status: r.Status, Skipped: orNull(r.Skipped.String()), Endpoint: orNull(r.Slug), Kind: string(r.Target.Kind), Target: r.Target.Name,
		Auth: string(r.Auth), User: orNull(email), EventID: orNull(r.EventID), RequestID: r.RequestID, Tries: r.Tries, DurationMS: milliseconds(r.Took),
		CPUMS: milliseconds(r.CPU), ErrorCode: orNull(r.ErrorCode), Error: orNull(r.Error),
	}, err
}

// runList prints runs, newest first.
func runList(f *flags) action {
	f.forTenant()
	filter := endpoint.RunFilter{}
	f.StringVar(&filter.Slug, "slug", "", "only runs of the endpoint with this `slug`")
	f.BoolVar(&filter.Errors, "errors", false, "only runs that failed")
	f.StringVar(&filter.RequestID, "request-id", "", "only runs of the request with this `id`, from its answer's X-Request-Id")
	f.sinceVar(&filter.Since)
	f.IntVar(&filter.Limit, "limit", 100, "at most so many runs (0: all)")
	f.listing("")
	return func(ctx context.Context) error {
		filter.RequestID = strings.ToLower(filter.RequestID)
		if _, ok := clock.TimeOf(filter.RequestID); filter.RequestID != "" && !ok {
			return f.wrong("--request-id %s: expected the id that the answer's header X-Request-Id has", filter.RequestID)
		}
		if filter.Limit < 0 {
			return f.wrong("--limit %d: expected 0 or more", filter.Limit)
		}
		return f.onTenant(ctx, func(t *tenantDB) error {
			var runs []*endpoint.Run
			err := endpoint.Runs(ctx, t.DB, t.config.Tenant.ID, filter, func(r *endpoint.Run) error {
				r.Trace, r.Console, r.Used = "", "", "" // large, and not printed
				runs = append(runs, r)
				return nil
			})
			if err != nil {
				return err
			}
			if len(runs) == 0 && filter.Slug != "" {
				if _, err := t.endpoint(ctx, filter.Slug); err != nil {
					return err
				}
			}
			emailOf := t.emails(ctx)
			l := &list{header: []string{"ID", "STARTED", "STATUS", "ENDPOINT", "TARGET", "USER", "MS", "ERROR"}}
			for _, r := range runs {
				line, err := lineOfRun(r, emailOf)
				if err != nil {
					return err
				}
				status := line.Status
				if line.Skipped != nil {
					status += ", " + *line.Skipped
				}
				l.add(line, line.ID, line.StartedAt, status, orEmpty(line.Endpoint), line.Kind+" "+line.Target, orEmpty(line.User),
					strconv.FormatFloat(line.DurationMS, 'f', 1, 64), orEmpty(line.ErrorCode))
			}
			return l.print(f.stdout, f.asJSON)
		})
	}
}

// runShow prints one run with its trace and console.
func runShow(f *flags) action {
	f.forTenant()
	id := f.required("id", "`id` of the run, as run list shows it")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			r, err := endpoint.RunByID(ctx, t.DB, t.config.Tenant.ID, *id)
			if err != nil {
				return err
			}
			line, err := lineOfRun(r, t.emails(ctx))
			if err != nil {
				return err
			}
			whole := struct {
				runLine
				Details json.RawMessage `json:"error_details"` // which fields were wrong, for instance
				Trace   json.RawMessage `json:"trace"`
				Console json.RawMessage `json:"console"`
			}{line, r.ErrorDetails(), json.RawMessage("null"), json.RawMessage(r.Console)}
			if r.Trace != "" {
				whole.Trace = json.RawMessage(r.Trace)
			}
			return printJSON(f.stdout, whole)
		})
	}
}

// runRetry runs a failed delivery again.
func runRetry(f *flags) action {
	f.forTenant()
	id := f.required("id", "`id` of the failed run, as run list shows it")
	return func(ctx context.Context) error {
		return f.onRuntime(ctx, func(t *tenantDB, s *endpoint.Service) error {
			out, already, err := s.Retry(ctx, t.config, *id)
			if err != nil {
				return err
			}
			if already {
				f.say("The event was processed meanwhile: nothing ran.")
				return nil
			}
			return f.printOutcome(out, "The delivery is processed.")
		})
	}
}
