package secret_test

import (
	"strings"
	"testing"

	"gatehouse/internal/secret"
)

func TestAPasswordHas8To128Characters(t *testing.T) {
	for password, want := range map[string]string{
		"":                        "at least 8",
		"1234567":                 "at least 8",
		"12345678":                "",
		"żółwżółw":                "",
		"żółwżół":                 "at least 8",
		strings.Repeat("€", 128):  "",
		strings.Repeat("a", 129):  "at most 128",
		"12345678\xff":            "UTF-8",
		strings.Repeat("a\n", 30): "",
	} {
		err := secret.CheckPassword(password)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", password, err, want)
		}
	}
}

func TestAPasswordVerifiesAgainstItsHashOnly(t *testing.T) {
	a, err := secret.HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := secret.HashPassword("correct horse")
	if !strings.HasPrefix(a, "$argon2id$v=19$m=19456,t=2,p=1$") || a == b {
		t.Errorf("hashes: %s, %s", a, b)
	}
	if !secret.VerifyPassword(a, "correct horse") || secret.VerifyPassword(a, "correct horsf") || secret.VerifyPassword(a, "") {
		t.Error("VerifyPassword is wrong")
	}
	if _, err := secret.HashPassword("short"); err == nil {
		t.Error("a short password was hashed")
	}
}

// Made by the reference implementation: echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1.
func TestAHashOfTheReferenceImplementationVerifies(t *testing.T) {
	const reference = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if !secret.VerifyPassword(reference, "password") {
		t.Error("it does not")
	}
}

func TestADamagedOrCostlyHashMatchesNothing(t *testing.T) {
	good, _ := secret.HashPassword("12345678")
	for _, phc := range []string{
		"", "$", "12345678", good[:len(good)-1], good + "$", good + " ",
		strings.Replace(good, "argon2id", "argon2i", 1),
		strings.Replace(good, "v=19", "v=16", 1),
		strings.Replace(good, "m=19456", "m=4194304", 1),
		strings.Replace(good, "m=19456", "m=0", 1),
		strings.Replace(good, "t=2", "t=4000000000", 1),
		strings.Replace(good, "t=2", "t=0", 1),
		strings.Replace(good, "p=1", "p=0", 1),
		strings.Replace(good, "p=1", "p=1,x=2", 1),
		strings.Replace(good, "p=1", "p=999", 1),
		"$argon2id$v=19$m=19456,t=2,p=1$$",
	} {
		if secret.VerifyPassword(phc, "12345678") {
			t.Errorf("%q matches", phc)
		}
	}
}

func BenchmarkVerifyPassword(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		secret.VerifyPassword(secret.DummyHash(), "12345678")
	}
}
