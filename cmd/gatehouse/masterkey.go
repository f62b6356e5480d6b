package main

import (
	"context"
	"errors"

	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/identity"
	"gatehouse/internal/outbox"
	"gatehouse/internal/secret"
	"gatehouse/internal/staff"
	"gatehouse/internal/tenant"
)

// checkValue is the name of the master key's check value in the database, where it
// is stored when the database is set up. Every backup contains it.
const checkValue = "master_key_check"

var errOtherKey = errors.New("master key: this is another one than the database was set up with; every node and command needs the same: " +
	"put that key back, or name it with --master-key-file or GATEHOUSE_MASTER_KEY")

// keyring returns the keyring of an open database. The master key must be the one
// that the database was set up with. With SQLite, keyring makes one in the data
// folder if none is given and the database contains nothing that another key may have
// sealed.
func (f *flags) keyring(ctx context.Context, d *db.DB) (*secret.Keyring, error) {
	// Read the check value before looking for the key: a process that sets the
	// database up makes the key first, so a check value without a key is not a
	// race.
	check, err := d.Value(ctx, checkValue)
	if err != nil {
		return nil, err
	}
	tenants, err := tenant.List(ctx, d)
	if err != nil {
		return nil, err
	}
	keyring, err := f.masterKey(check == "" && len(tenants) == 0)
	if err != nil {
		return nil, err
	}
	if check == "" {
		if check, err = setUp(ctx, d, tenants, keyring); err != nil {
			return nil, err
		}
	}
	if check != keyring.CheckValue() {
		return nil, errOtherKey
	}
	return keyring, nil
}

// setUp stores the check value of a database that has none, and returns the stored
// one. SQLite databases of early versions have none: setUp returns errOtherKey for
// a key that does not open the secrets in such a database.
func setUp(ctx context.Context, d *db.DB, tenants []tenant.ID, keyring *secret.Keyring) (check string, err error) {
	for _, id := range tenants {
		h := d.For(id)
		err := errors.Join(identity.CheckKeys(ctx, h, keyring), custom.CheckSecrets(ctx, h, keyring),
			outbox.CheckMails(ctx, h, keyring), endpoint.CheckDeliveries(ctx, h, keyring), staff.CheckFactors(ctx, h, keyring))
		if errors.Is(err, secret.ErrOpen) {
			return "", errOtherKey
		}
		if err != nil {
			return "", err
		}
	}
	return d.Once(ctx, checkValue, keyring.CheckValue())
}

// masterKey returns the keyring of the master key from the flags, the environment or,
// with SQLite, the data folder; create allows it to make one there. It reads the key
// once, because a pipe can be read only once.
func (f *flags) masterKey(create bool) (*secret.Keyring, error) {
	if f.ring != nil {
		return f.ring, nil
	}
	o := secret.MasterKeyOptions{File: f.masterKeyFile, Env: f.getenv("GATEHOUSE_MASTER_KEY"), CreateInDir: create}
	if f.database == "" {
		o.Dir = f.data
	}
	var err error
	f.ring, err = secret.LoadMasterKey(o)
	return f.ring, err
}
