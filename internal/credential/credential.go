// Package credential has the words for how a request authenticated: those by
// which routes, endpoints, runs and both logs name it.
package credential

// Kind is a kind of credential (contract K1), as the request log and the
// history of runs write it.
type Kind string

// The kinds.
const (
	APIKey       Kind = "key"
	AccessToken  Kind = "jwt" // of an external user
	WebhookToken Kind = "token"
	Signature    Kind = "signed" // of a provider
	None         Kind = "none"
)

// Label returns the kind as the audit log writes it (contract G6): "" for none.
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
