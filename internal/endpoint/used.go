package endpoint

import (
	"encoding/json"

	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/records"
)

// Used is what a run used of its limits (contract X6). Of a flow, Calls, Handed
// and Memory are the largest of the components that it ran.
type Used struct {
	Changes int   `json:"changes"` // records changed
	Written int64 `json:"written"` // bytes of record data changed
	Read    int   `json:"read"`    // records read by id
	Calls   int   `json:"calls"`   // of records.* in one component
	Handed  int   `json:"handed"`  // bytes of calls and answers of one component
	Memory  int   `json:"memory"`  // bytes that one component held
	Nodes   int   `json:"nodes"`   // nodes that a flow executed
	// LimitMS is the time that the run had, in milliseconds; 0 if that is not known.
	LimitMS int64 `json:"limitMs"`
}

// component counts the run of one component.
func (u *Used) component(c component.Used) {
	u.Calls, u.Handed, u.Memory = max(u.Calls, c.HostCalls), max(u.Handed, c.HostBytes), max(u.Memory, c.Memory)
}

// keptUsed is the JSON of Run.Used: what the run used and, where it failed, the details
// of its error.
type keptUsed struct {
	Used
	Details json.RawMessage `json:"details,omitempty"`
}

func (u Used) json(details json.RawMessage) string {
	b, _ := json.Marshal(keptUsed{u, details}) // cannot fail: numbers and JSON
	return string(b)
}

// usage returns what the execution used so far.
func (x *execution) usage() Used {
	u := x.used
	unit := x.unit.Used()
	u.Changes, u.Written, u.Read = unit.Changed, unit.Written, unit.Read
	u.LimitMS = x.limit().Milliseconds()
	return u
}

// AdminMeasure is what a run used of one limit.
type AdminMeasure struct {
	// What is time_ms, memory_bytes, records_calls, handed_bytes, changes,
	// changed_bytes, records_read or nodes.
	What  string `json:"what"`
	Used  int64  `json:"used"`
	Limit int64  `json:"limit"`
}

// measures returns what a run of a kind of target used, with the limits.
func (u Used) measures(kind custom.TargetKind, tookUS int64) []AdminMeasure {
	list := []AdminMeasure{}
	if u.LimitMS > 0 {
		list = append(list, AdminMeasure{"time_ms", tookUS / 1000, u.LimitMS})
	}
	if kind == custom.ToAutomation {
		list = append(list, AdminMeasure{"nodes", int64(u.Nodes), automation.MaxExecutions})
	}
	if kind == custom.ToComponent || u.Memory > 0 {
		list = append(list,
			AdminMeasure{"memory_bytes", int64(u.Memory), component.MaxMemory},
			AdminMeasure{"records_calls", int64(u.Calls), component.MaxHostCalls},
			AdminMeasure{"handed_bytes", int64(u.Handed), component.MaxHostBytes})
	}
	return append(list,
		AdminMeasure{"changes", int64(u.Changes), records.MaxChanged},
		AdminMeasure{"changed_bytes", u.Written, records.MaxWritten},
		AdminMeasure{"records_read", int64(u.Read), records.MaxRead})
}
