// Package identity is External Identity: registration, login and tokens of the
// end-users of a tenant's app (contract I1–I15, T1–T10,
// L7–L9, U7, U8).
//
// The rules in ten lines:
//
//   - Access tokens are JWTs that live an hour and are never taken back; refresh
//     tokens live thirty days, and are rotated by each use.
//   - A refresh token's successor is derived from it, so that whoever repeats a
//     refresh within 30 s gets the same one again; later it is theft, and ends
//     the chain. A chain's row is held by whoever changes one of its tokens.
//   - What ends all sessions of a user (deactivation by whatever way, a new
//     password) raises users.session_epoch; chains and one-time tokens hold
//     only at the epoch they were made at, so nothing brings them back.
//   - One-time tokens are spent by one compare-and-set. Only hashes are stored.
//   - Lifetimes count in database time, so that nodes agree.
//   - Nothing tells an address with an account from one without, but for
//     registration (contract I5).
//   - Limits are checked before passwords are hashed; hashes wait for admission.
//   - What changes a user here holds tenant.Fence and is no change of
//     configuration; rotating a signing key is one.
package identity
