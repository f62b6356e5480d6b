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
	"gatehouse/internal/tenant"
)

// checkValue names the master key's check value in the database. It is stored
// when the database is set up, and goes with every backup of it.
const checkValue = "master_key_check"

var errOtherKey = errors.New("master key: this is another one than the database was set up with; every node and command needs the same: " +
	"put that key back, or name it with --master-key-file or GATEHOUSE_MASTER_KEY")

// keyring loads the master key of an open database. It must be the one that the
// database was set up with. With SQLite it is made in the data folder when nothing
// gives one, but only while there is nothing that another key may have sealed.
func (e *env) keyring(ctx context.Context, f *flags, d *db.DB) (*secret.Keyring, error) {
	// The database is asked before the key is looked for: whoever sets it up
	// makes the key first, so that a check value without a key is no race.
	check, err := d.Value(ctx, checkValue)
	if err != nil {
		return nil, err
	}
	tenants, err := tenant.List(ctx, d)
	if err != nil {
		return nil, err
	}
	keyring, err := e.masterKey(f, check == "" && len(tenants) == 0)
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

// setUp stores the check value of a database that has none and returns the one
// that is stored. SQLite had none at first: a key that does not open what such a
// database holds is refused.
func setUp(ctx context.Context, d *db.DB, tenants []tenant.ID, keyring *secret.Keyring) (check string, err error) {
	for _, id := range tenants {
		h := d.For(id)
		err := errors.Join(identity.CheckKeys(ctx, h, keyring), custom.CheckSecrets(ctx, h, keyring),
			outbox.CheckMails(ctx, h, keyring), endpoint.CheckDeliveries(ctx, h, keyring))
		if errors.Is(err, secret.ErrOpen) {
			return "", errOtherKey
		}
		if err != nil {
			return "", err
		}
	}
	return d.Once(ctx, checkValue, keyring.CheckValue())
}

// masterKey is the master key that the flags or the environment give, read once: a
// pipe that gives it has it no second time. With SQLite it may be the folder's,
// and is made there if create says so.
func (e *env) masterKey(f *flags, create bool) (*secret.Keyring, error) {
	if f.masterKey != nil {
		return f.masterKey, nil
	}
	o := secret.MasterKeyOptions{File: f.masterKeyFile, Env: e.getenv("GATEHOUSE_MASTER_KEY"), CreateInDir: create}
	if f.database == "" {
		o.Dir = f.data
	}
	var err error
	f.masterKey, err = secret.LoadMasterKey(o)
	return f.masterKey, err
}
