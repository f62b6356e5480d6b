// Package identity is External Identity: registration, login and tokens of the
// end-users of a tenant's app (contract I1–I15, T1–T10, L7–L9, U7, U8).
//
// The rules in short:
//
//   - Access tokens are JWTs that are valid for an hour and cannot be revoked. Refresh
//     tokens are valid for thirty days, and each use rotates them.
//   - A refresh token's successor is derived from it, so that a refresh that is
//     repeated within 30 s returns the same successor. A rotated token that is presented
//     later counts as stolen and ends the chain. A transaction that changes a token
//     holds the lock of its chain.
//   - Deactivating a user and setting a password raise users.session_epoch. Chains and
//     one-time tokens are valid only at the epoch at which they were made, so nothing
//     makes them valid again.
//   - A one-time token is used up by one compare-and-set. Only hashes are stored.
//   - Lifetimes are measured in database time, so that nodes agree.
//   - No answer shows whether an address has an account, except at registration
//     (contract I5).
//   - Limits are checked before a password is hashed, and hashing waits for a place.
//   - Changes of a user hold tenant.Fence and are not changes of configuration;
//     rotating a signing key is one.
package identity
