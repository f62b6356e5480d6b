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
	Signature    Kind = "signed" // of a provider
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
	default:
		return ""
	}
}
