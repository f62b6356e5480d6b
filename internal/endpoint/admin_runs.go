package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// AdminPerson is a user as others see them.
type AdminPerson struct {
	ID    user.ID `json:"id"`
	Email string  `json:"email"`
	Name  string  `json:"name"`
}

// AdminTarget is what a run runs.
type AdminTarget struct {
	Kind string `json:"kind"` // component or automation
	Name string `json:"name"`
}

// AdminRun is a run in a list (contract X8). Times are in microseconds.
type AdminRun struct {
	ID        string       `json:"id"`
	StartedAt string       `json:"startedAt"`
	TookUS    int64        `json:"tookUs"`
	CPUUS     int64        `json:"cpuUs"`
	Target    AdminTarget  `json:"target"`
	Endpoint  *string      `json:"endpoint"`
	Auth      *string      `json:"auth"`
	User      *AdminPerson `json:"user"` // whom it ran as; null if that user is gone
	RequestID string       `json:"requestId"`
	EventID   *string      `json:"eventId"`
	Status    string       `json:"status"`  // succeeded, failed or duplicate
	Skipped   string       `json:"skipped"` // what a flow left out, like "1 skipped: …"; "" for nothing
	Tries     int          `json:"tries"`
	Error     *AdminError  `json:"error"` // its message is cut in a list
}

// AdminError says how a run failed.
type AdminError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Component, Line and Column are the place of the failure in a component's
	// source, "" and 0 if there is none.
	Component string         `json:"component"`
	Line      int            `json:"line"`
	Column    int            `json:"column"`
	Stack     string         `json:"stack"`
	Status    int            `json:"status"`  // the HTTP status of the answer; 0 in a kept run
	Details   map[string]any `json:"details"` // null for none, and in a list
}

// AdminStep is one execution of one node of a flow. Steps inside an if or each
// follow it, with a greater depth.
type AdminStep struct {
	Node      string          `json:"node"` // its id, or its path
	Type      string          `json:"type"`
	Depth     int             `json:"depth"`
	TookUS    int64           `json:"took_us"`
	Result    json.RawMessage `json:"result,omitempty"`
	Truncated bool            `json:"truncated,omitempty"` // then result or details is the text of its beginning
	Skipped   string          `json:"skipped,omitempty"`   // what could not be read
	Error     string          `json:"error,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"` // of the error: an object
}

// AdminRunDetail is a run with all that is kept of it.
type AdminRunDetail struct {
	AdminRun
	Trace   []AdminStep      `json:"trace"` // null for a component
	Console []component.Line `json:"console"`
	Used    []AdminMeasure   `json:"used"` // empty for a run of an earlier version
}

// errorPlace finds the place in a component's source in the text of Describe.
var errorPlace = regexp.MustCompile(`(?s)^(.*?) \(([a-z][a-z0-9_]{0,62}):(\d+):(\d+)\)(?:\n(.*))?$`)

// errorOf returns an error as Describe returned it, in parts.
func errorOf(code, text string) *AdminError {
	e := &AdminError{Code: code, Message: text}
	if m := errorPlace.FindStringSubmatch(text); m != nil {
		e.Message, e.Component, e.Stack = m[1], m[2], m[5]
		e.Line, _ = strconv.Atoi(m[3])
		e.Column, _ = strconv.Atoi(m[4])
	}
	return e
}

// statusOf returns the HTTP status and the details with which an error is answered.
func statusOf(err error) (int, map[string]any) {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.HTTPStatus(), f.Details
	}
	return fault.Status(fault.Internal), nil
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func instantOf(micros int64) string { return string(clock.AppendRFC3339Micro(nil, micros)) }

// person returns a user as others see them, nil for one that is not known.
func person(u *user.User) *AdminPerson {
	if u == nil {
		return nil
	}
	return &AdminPerson{u.ID, u.Email, u.Name}
}

// lines returns runs as a list has them.
func (s *Service) lines(ctx context.Context, tenantID tenant.ID, runs ...*Run) ([]AdminRun, error) {
	ids := map[user.ID]bool{}
	for _, r := range runs {
		ids[r.UserID] = true
	}
	people, err := s.store.people(ctx, tenantID, ids)
	if err != nil {
		return nil, err
	}
	list := make([]AdminRun, len(runs))
	for i, r := range runs {
		list[i] = AdminRun{
			ID: r.ID, StartedAt: instantOf(r.StartedAt), TookUS: r.Took, CPUUS: r.CPU, Target: AdminTarget{string(r.Target.Kind), r.Target.Name},
			Endpoint: orNil(r.Slug), Auth: orNil(string(r.Auth)), User: person(people[r.UserID]), RequestID: r.RequestID, EventID: orNil(r.EventID),
			Status: r.Status, Skipped: r.Skipped.String(), Tries: r.Tries,
		}
		if r.Status == Failed {
			list[i].Error = errorOf(r.ErrorCode, r.Error)
			if kept := r.ErrorDetails(); kept != nil {
				if err := json.Unmarshal(kept, &list[i].Error.Details); err != nil {
					return nil, err
				}
			}
		}
	}
	return list, nil
}

// adminRuns lists runs, newest first. The parameters kind and target, status,
// endpoint and event filter it, since and until bound it in time.
func (s *Service) adminRuns(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q, err := queryOf(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	kind := q.oneOf("kind", string(custom.ToComponent), string(custom.ToAutomation))
	name := q.values.Get("target")
	if (kind == "") != (name == "") {
		q.wrong["target"] = "expected kind and target together"
	}
	of := runQuery{
		target: custom.Target{Kind: custom.TargetKind(kind), Name: name}, status: q.oneOf("status", Succeeded, Failed, Duplicate),
		slug: q.values.Get("endpoint"), eventID: q.values.Get("event"), bounds: s.bounds(c, q), limit: q.limit(),
	}
	if err := q.problem(); err != nil {
		return httpapi.Reply{}, err
	}
	page, next, err := s.store.runPage(ctx, c.Config.Tenant.ID, of)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list, err := s.lines(ctx, c.Config.Tenant.ID, page...)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return s.replyList(c, list, len(list), next)
}

// adminRun returns one run with its trace, console and what it used of the limits.
func (s *Service) adminRun(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	run, err := s.store.runByID(ctx, c.Config.Tenant.ID, c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	lines, err := s.lines(ctx, c.Config.Tenant.ID, run)
	if err != nil {
		return httpapi.Reply{}, err
	}
	d := AdminRunDetail{AdminRun: lines[0], Console: []component.Line{}, Used: []AdminMeasure{}}
	if d.Trace, err = stepsOf([]byte(run.Trace)); err != nil {
		return httpapi.Reply{}, err
	}
	if err := json.Unmarshal([]byte(run.Console), &d.Console); err != nil {
		return httpapi.Reply{}, err
	}
	if run.Used != "" {
		used := Used{}
		if err := json.Unmarshal([]byte(run.Used), &used); err != nil {
			return httpapi.Reply{}, err
		}
		d.Used = used.measures(run.Target.Kind, run.Took)
	}
	return reply(c, d)
}

// stepsOf reads a trace, nil for a component's.
func stepsOf(trace []byte) ([]AdminStep, error) {
	if len(trace) == 0 {
		return nil, nil
	}
	var steps []AdminStep
	err := json.Unmarshal(trace, &steps)
	return steps, err
}
