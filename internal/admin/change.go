package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/config"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// asked is a change that was asked for.
type asked struct {
	spec    *config.Spec
	options config.Options
	text    Manifest // nil for edits
}

// maxEdits bounds the objects that one request edits.
const maxEdits = 1000

// read reads a change. The body counts what the tree made of it takes.
func (s *Service) read(c *httpapi.Authed, body *ConfigChange) (*asked, error) {
	raw, err := c.Body()
	if err != nil {
		return nil, err
	}
	if err := c.Keep(treeFactor * len(raw)); err != nil {
		return nil, err
	}
	a := &asked{options: s.options}
	a.options.Prune = body.Prune
	if body.Expected != nil {
		a.options.Expected = []config.Expected{}
		for _, e := range *body.Expected {
			a.options.Expected = append(a.options.Expected, config.Expected{Kind: e.Kind, Object: e.Object, Version: e.Version})
		}
	}
	switch {
	case (body.Manifest == "") == (len(body.Edits) == 0):
		return nil, fault.New(fault.Validation, "expected either edits or a manifest")
	case body.Manifest != "":
		return a, s.readManifest(c, a, body)
	case body.Prune || len(body.Variables) > 0:
		return nil, fault.New(fault.Validation, "prune and variables go with a manifest")
	case len(body.Edits) > maxEdits:
		return nil, fault.New(fault.Validation, "edits: expected at most %d", maxEdits)
	}
	edits := make([]config.Edit, len(body.Edits))
	for i, e := range body.Edits {
		edits[i] = config.Edit{Kind: e.Kind, Name: e.Name, Against: e.Against, Activate: e.Activate}
		if len(e.Value) == 0 || string(e.Value) == "null" {
			continue
		}
		if edits[i].Value, err = valueOf(e.Value); err != nil {
			return nil, fault.New(fault.Validation, "edits[%d].value: %s", i, err)
		}
	}
	a.spec = config.DecodeEdits(c.Config.Tenant.ID, edits, func(string) string { return "" })
	return a, nil
}

func (s *Service) readManifest(c *httpapi.Authed, a *asked, body *ConfigChange) (err error) {
	if err := full(c.Viewer); err != nil {
		return err
	}
	if len(body.Manifest) > maxManifest {
		return fault.New(fault.PayloadTooLarge, "the manifest is larger than the %d MiB that are taken here: the command gatehouse apply takes more", maxManifest>>20)
	}
	a.text, err = s.manifests.Read([]byte(body.Manifest), func(name string) string { return body.Variables[name] })
	if err != nil {
		return told(err)
	}
	a.spec = a.text.Spec()
	if id := a.spec.Tenant(); id != "" && id != c.Config.Tenant.ID {
		return fault.New(fault.Validation, "the manifest is of tenant %s, and this is %s", id, c.Config.Tenant.ID)
	}
	return nil
}

// located gives the problems of an error the lines of the manifest, if it is of one, and
// makes it one that can be told.
func (a *asked) located(err error) error {
	if a.text != nil && err != nil {
		err = a.text.Located(err)
	}
	return told(err)
}

// told returns an error of package config as one of the API: problems are FORBIDDEN if one
// of them is, CONFLICT if all are, or VALIDATION, with details.problems.
func told(err error) error {
	var found *config.Problems
	if !errors.As(err, &found) {
		return err
	}
	list := make([]ConfigProblem, len(found.List))
	codes := map[fault.Code]int{}
	for i, one := range found.List {
		code := fault.Validation
		if one.Cause != nil && fault.CodeOf(one.Cause) != "" {
			code = fault.CodeOf(one.Cause)
		}
		codes[code]++
		list[i] = ConfigProblem{Path: one.Path, Line: one.Line, Text: one.Text, Reason: one.Reason, Code: string(code)}
		if list[i].Reason == "" {
			list[i].Reason = one.Text
		}
	}
	code := fault.Validation
	switch {
	case codes[fault.Forbidden] > 0:
		code = fault.Forbidden
		slices.SortStableFunc(list, func(a, b ConfigProblem) int { return rank(a) - rank(b) })
	case codes[fault.Conflict] == len(list):
		code = fault.Conflict
	}
	message := list[0].Text
	if more := len(list) - 1 + found.Left; more > 0 {
		message = fmt.Sprintf("%s; and %d more", message, more)
	}
	return fault.New(code, "%s", message).With("problems", list).With("left", found.Left)
}

func rank(p ConfigProblem) int {
	if p.Code == string(fault.Forbidden) {
		return 0
	}
	return 1
}

func (s *Service) plan(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, leave, err := s.turnWithBody(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	a, err := s.read(c, body)
	if err != nil {
		return httpapi.Reply{}, err
	}
	a.options.Expected = nil
	p, err := s.store.plan(ctx, c.Config.Tenant.ID, author(c), a.spec, a.options)
	if err != nil {
		return httpapi.Reply{}, a.located(err)
	}
	return reply(c, a.planOf(p), nil)
}

func (a *asked) planOf(p *config.Plan) ConfigPlan {
	is := ConfigPlan{Changes: []PlanChange{}, Gone: p.Gone, Warnings: p.Warnings}
	for _, one := range p.Planned() {
		line := 0
		if a.text != nil && one.Path != "" {
			line = a.text.Line(one.Path)
		}
		is.Changes = append(is.Changes, PlanChange{
			Action: one.Action, Kind: one.Kind, Name: one.Name, Object: one.Object, Version: one.Version, Path: one.Path, Line: line,
			Before: one.Before, After: one.After, Differences: differences(one.Differences),
		})
	}
	for _, v := range p.Effect.Reindexed {
		is.Effect.Reindexed = append(is.Effect.Reindexed, PlanVisit(v))
	}
	for _, f := range p.Effect.Fields {
		is.Effect.Fields = append(is.Effect.Fields, PlanGoneField(f))
	}
	is.Effect.Losing, is.Effect.Keys, is.Effect.Endpoints = PlanAffected(p.Effect.Losing), PlanAffected(p.Effect.Keys), PlanAffected(p.Effect.Endpoints)
	return is
}

func differences(list []config.Difference) []PlanDifference {
	shown := []PlanDifference{}
	for _, d := range list {
		shown = append(shown, PlanDifference(d))
	}
	return shown
}

func applied(r *config.Result) ConfigApplied {
	is := ConfigApplied{Changes: []AppliedLine{}, Gone: r.Gone, Warnings: r.Warnings}
	for _, c := range r.Changes {
		is.Changes = append(is.Changes, AppliedLine{c.Action, c.Kind, c.Name, c.Line()})
	}
	return is
}

// workError is an error as a long change keeps it.
func workError(err error) *WorkError {
	e := httpapi.Public(err)
	is := &WorkError{Code: string(e.Code), Message: e.Message, Details: map[string]any{}}
	if b, err := json.Marshal(e.Details); err == nil {
		_ = json.Unmarshal(b, &is.Details) // what was just encoded
	}
	return is
}
