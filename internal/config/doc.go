// Package config defines a tenant's configuration: its kinds of objects, the rules
// that they must satisfy, and how a change of them is planned and written. It
// knows no text format: a codec (internal/manifest for YAML) builds a tree of
// Values, and locates every Problem by the path that it carries.
//
//   - Decode is strict. An unknown or doubled key, a wrong type, a dangling name
//     is a Problem, and all of them are reported together.
//   - A Spec makes every object that it names equal to its description. An absent
//     top-level key keeps what is stored; inside an object, an absent member has
//     its default, except for the few members that belong to the user (users.go).
//     Prune removes the objects that a given section does not name; users are
//     deactivated, never deleted.
//   - Everything is checked against the state read inside the transaction that
//     changes it, through tenant.Configure: all or nothing, recorded in the
//     change history. Applying the same Spec again changes nothing.
//   - Slow work, hashing passwords and compiling sources, is done before that
//     transaction.
//   - Secrets are sealed, and no output, history or export contains them.
//
// A kind of object is one file: its table of members (table.go), which serves
// decoding, export, the change history and Describe, its merge and its checks, and
// its entry in the lists of kinds.go. A change is a whole configuration (Decode) or
// edits of single objects (DecodeEdits). Apply makes it; NewPlan works it out first,
// with its effect, and Plan.Write makes it if nothing it concerns has changed.
package config
