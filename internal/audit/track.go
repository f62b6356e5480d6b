package audit

import (
	"slices"
	"strings"
)

// TrackGate is one gate on the way of a request.
type TrackGate struct {
	Gate  string    `json:"gate"`
	State GateState `json:"state"`
}

// GateState says whether a request passed a gate.
type GateState string

// The states.
const (
	Open      GateState = "open"
	Shut      GateState = "shut"
	Unreached GateState = "unreached" // a gate before it was shut
)

// Values returns all states.
func (GateState) Values() []string { return []string{string(Open), string(Shut), string(Unreached)} }

// gateHost is always passed: a request to an unknown host has no entry.
const gateHost = "host"

// allGates are the gates in the order of contract H3.
var allGates = []string{
	gateHost, GateSwitch, GatePath, GateCredential, GateAddress, GateOrigin, GateRate, GatePermission, GateBody, GateFields, GateRecord, GateRun,
	GateConflict, GateService,
}

// track returns the gates on the way of a request, in order, up to those that were
// not reached. fromPage is whether the request had an Origin.
func track(e *Entry, fromPage bool) []TrackGate {
	applies := gatesOf(e, fromPage)
	var list []TrackGate
	state := Open
	for _, gate := range allGates {
		switch {
		case gate == e.Gate:
			list = append(list, TrackGate{gate, Shut})
			state = Unreached
		case slices.Contains(applies, gate):
			list = append(list, TrackGate{gate, state})
		}
	}
	return list
}

// gatesOf returns the gates that a request of this kind has on its way.
func gatesOf(e *Entry, fromPage bool) []string {
	list := []string{gateHost, GatePath}
	area := "/" + strings.SplitN(strings.TrimPrefix(e.Endpoint, "/")+"/", "/", 2)[0]
	if area != "/admin" {
		list = append(list, GateSwitch)
	}
	if area != "/auth" || e.Auth != "" {
		list = append(list, GateCredential)
	}
	if e.Auth == "KEY" {
		list = append(list, GateAddress)
		if fromPage {
			list = append(list, GateOrigin)
		}
	}
	list = append(list, GateRate)
	changes := e.Method == "POST" || e.Method == "PATCH"
	switch area {
	case "/data":
		list = append(list, GatePermission, GateBody)
		if changes {
			list = append(list, GateFields)
		}
		if strings.Count(strings.Trim(e.Path, "/"), "/") >= 4 { // public/v1/data/ENTITY/ID
			list = append(list, GateRecord)
		}
	case "/custom":
		list = append(list, GateBody, GateRun)
	case "/admin":
		list = append(list, GatePermission, GateBody)
	case "/auth":
		list = append(list, GateBody)
	}
	return list
}
