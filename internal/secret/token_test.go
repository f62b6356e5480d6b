package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"gatehouse/internal/secret"
)

func TestTokensHaveTheirPrefixAnd64HexDigits(t *testing.T) {
	for _, c := range []struct {
		make func() secret.Token
		form string
	}{
		{secret.NewAPIToken, `^svc_api_[0-9a-f]{64}$`},
		{secret.NewWebhookToken, `^svc_whk_[0-9a-f]{64}$`},
	} {
		a, b := c.make().Reveal(), c.make().Reveal()
		if !regexp.MustCompile(c.form).MatchString(a) || a == b {
			t.Errorf("%s: %s, %s", c.form, a, b)
		}
	}
}

func TestATokenIsHiddenWhereverItIsPrinted(t *testing.T) {
	token := secret.Token("svc_api_plain")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", token, "in", struct{ T secret.Token }{token})
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", token)
	v1, _ := json.Marshal(map[string]secret.Token{"token": token})
	v2, _ := jsonv2.Marshal(struct{ T *secret.Token }{&token})
	shown := log.String() + string(v1) + string(v2) + token.String() + token.GoString()
	for _, verb := range []string{"%v", "%s", "%q", "%x", "%X", "%d", "%#v", "%+v", "%T", "%20s"} {
		shown += fmt.Sprintf(verb, token) + fmt.Sprintf(verb, struct{ T secret.Token }{token}) + fmt.Sprintf(verb, []secret.Token{token})
	}
	if strings.Contains(shown, "plain") || strings.Contains(shown, fmt.Sprintf("%x", "plain")) {
		t.Errorf("leaks: %s", shown)
	}
	if token.Reveal() != "svc_api_plain" {
		t.Error("Reveal does not reveal")
	}
}

func TestOnlyTheSHA256IsStored(t *testing.T) {
	if got := secret.Hash("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Error(got)
	}
}

func TestThePrefixIsTheFirstTwelveCharactersAndAtMostAThird(t *testing.T) {
	filler := strings.Repeat("x", 64)
	for in, want := range map[string]string{
		"svc_api_0123456789" + filler:       "svc_api_0123",
		"żółwżółwżółwżółw" + filler:         "żółwżółwżółw",
		"ab\xffcdefghijklmn" + filler:       "ab\ufffdcdefghijk",
		"ab\x00":                            "a",
		"\x00bc":                            "\ufffd",
		"ok_until_12\xe2\x82\xac!" + filler: "ok_until_12€",
		"":                                  "",
		"me":                                "",
		"hunter2":                           "hu",
		"exactly12byt":                      "exac",
		"correct horse battery staple":      "correct h",
		strings.Repeat("a", 35):             strings.Repeat("a", 11),
		strings.Repeat("a", 36):             strings.Repeat("a", 12),
	} {
		if got := secret.Prefix(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "token"))
		got := secret.Prefix(in)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) != min(12, utf8.RuneCountInString(in)/3) || strings.Contains(got, "\x00") {
			t.Fatalf("%q: %q", in, got)
		}
	})
}

func BenchmarkHash(b *testing.B) {
	token := secret.NewAPIToken().Reveal()
	b.ReportAllocs()
	for b.Loop() {
		_ = secret.Hash(token)
	}
}
