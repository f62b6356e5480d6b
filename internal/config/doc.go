// Package config is what a tenant's configuration is: its kinds of objects, what
// must hold of them, and how a change of them is planned and carried out. It
// knows no text format: a codec (internal/manifest for YAML) makes a tree of
// Values, and places every Problem by the path that it carries.
//
//   - Decode is strict. An unknown or doubled key, a wrong type, a dangling name
//     is a Problem, and all of them are reported together.
//   - A Spec makes every object that it names equal to what it says. A top-level
//     key that is absent keeps what is stored; inside an object, absent members
//     have their defaults (but see users.go for the few that belong to the user).
//     Prune removes what a section that is present does not name; users are
//     deactivated, never deleted.
//   - Everything is checked against the state read inside the transaction that
//     changes it, through tenant.Configure: all or nothing, recorded in the
//     change history. Applying the same Spec again changes nothing.
//   - What takes long, hashing passwords and compiling sources, is done ahead of
//     that transaction.
//   - Secrets are sealed, and no output, history or export contains them.
//
// A kind of object is one file: its table of members (table.go), which serves
// decoding, export and the change history, its merge and its checks, and its
// entry in the lists of kinds.go. Apply takes a whole configuration (Decode) or
// edits of single objects (DecodeEdits).
package config
