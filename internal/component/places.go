package component

import "gatehouse/internal/admission"

// Limits are the bounds of who may run at once, for whoever lets in others
// beside the engine by the same measure.
func (e *Engine) Limits() admission.Limits {
	o := e.gate.limits
	return admission.Limits{
		Running: o.Instances, PerKey: o.PerTenant, Waiting: o.Waiting, WaitingPerKey: o.WaitingPerTenant, MaxWait: o.MaxWait,
	}
}
