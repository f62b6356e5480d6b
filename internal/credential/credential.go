// Package credential names the kinds of credential. Routes, endpoints, runs and both
// logs use these names for how a request authenticated.
package credential

// Kind is a kind of credential (contract K1), in the form that the request log and the
// history of runs have.
type Kind string

// The kinds.
const (
	APIKey       Kind = "key"
	AccessToken  Kind = "jwt" // of an external user
	WebhookToken Kind = "token"
	Signature    Kind = "signed"  // of a provider
	Session      Kind = "session" // of staff, by cookie, on the admin surface alone
	None         Kind = "none"
)

// Label returns the form that the audit log has (contract G6), "" for None.
func (k Kind) Label() string {
	switch k {
	case APIKey:
		return "KEY"
	case AccessToken:
		return "JWT"
	case WebhookToken:
		return "TOKEN"
	case Signature:
		return "SIGNED"
	case Session:
		return "SESSION"
	default:
		return ""
	}
}

// Stage is how far the sign-in of a staff session has come.
type Stage string

// The stages.
const (
	// Full sessions have passed all that the tenant asks for.
	Full Stage = "full"
	// CodeDue sessions have passed the password; a code of the second factor is next.
	CodeDue Stage = "code"
	// EnrolmentDue sessions are of users without a second factor, which their tenant
	// demands: to set one up is next.
	EnrolmentDue Stage = "enrolment"
)

// Values returns all stages.
func (Stage) Values() []string { return []string{string(Full), string(CodeDue), string(EnrolmentDue)} }
