package verifiers_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// delivery is what a provider sends, and what its verifier must return.
type delivery struct {
	Scheme  string            `json:"scheme"`
	Secret  string            `json:"secret"`
	Body    []byte            `json:"body"`
	Headers map[string]string `json:"headers"`
	Time    int64             `json:"time"`
	// ID is empty if the verifier uses the signature in hex as the id.
	ID    string          `json:"id"`
	Kind  string          `json:"kind"`
	Event json.RawMessage `json:"event"`
	// Reply is what a challenge is answered with; then there is no event.
	Reply json.RawMessage `json:"reply"`
	// Request is {method, query, url}, where it matters.
	Request json.RawMessage `json:"request"`
}

// scheme describes one way of signing.
type scheme struct {
	file      string // of the verifier
	signature string // the header with the signature
	time      string // the header with the time stamp
	stamped   string // how the time stamp stands in signature, where time is ""
	id, kind  string // headers, "" where the body has them
	signedID  bool
	timed     bool
	library   bool // the provider's library signs the deliveries
	prefix    string
	encode    func([]byte) string
	// signed returns the signed text, made from the time stamp, the id and the body.
	signed func(stamp, id string, body []byte) []byte
}

// schemes implements the schemes as the providers' documentation describes them.
var schemes = map[string]scheme{
	"stripe": {file: "stripe.js", signature: "stripe-signature", stamped: "t=%s,", timed: true, library: true, prefix: "v1=", encode: hex.EncodeToString,
		signed: func(stamp, _ string, body []byte) []byte { return append([]byte(stamp+"."), body...) }},
	"github": {file: "github.js", signature: "x-hub-signature-256", id: "x-github-delivery", kind: "x-github-event", library: true,
		prefix: "sha256=", encode: hex.EncodeToString, signed: bodyAlone},
	"slack": {file: "slack.js", signature: "x-slack-signature", time: "x-slack-request-timestamp", timed: true, library: true, prefix: "v0=", encode: hex.EncodeToString,
		signed: func(stamp, _ string, body []byte) []byte { return append([]byte("v0:"+stamp+":"), body...) }},
	"shopify": {file: "shopify.js", signature: "x-shopify-hmac-sha256", id: "x-shopify-webhook-id", kind: "x-shopify-topic", library: true,
		encode: base64.StdEncoding.EncodeToString, signed: bodyAlone},
	"standard": {file: "standard-webhooks.js", signature: "webhook-signature", time: "webhook-timestamp", id: "webhook-id", signedID: true, timed: true,
		library: true, prefix: "v1,", encode: base64.StdEncoding.EncodeToString, signed: idStampBody},
	"svix": {file: "standard-webhooks.js", signature: "svix-signature", time: "svix-timestamp", id: "svix-id", signedID: true, timed: true,
		library: true, prefix: "v1,", encode: base64.StdEncoding.EncodeToString, signed: idStampBody},
	"paddle": {file: "paddle.js", signature: "paddle-signature", stamped: "ts=%s;", timed: true, library: true, prefix: "h1=", encode: hex.EncodeToString,
		signed: func(stamp, _ string, body []byte) []byte { return append([]byte(stamp+":"), body...) }},
	"meta":   {file: "meta.js", signature: "x-hub-signature-256", library: true, prefix: "sha256=", encode: hex.EncodeToString, signed: bodyAlone},
	"simple": {file: "simple.js", signature: "x-signature", encode: hex.EncodeToString, signed: bodyAlone},
}

func bodyAlone(_, _ string, body []byte) []byte { return body }

func idStampBody(stamp, id string, body []byte) []byte {
	return append([]byte(id+"."+stamp+"."), body...)
}

func (d *delivery) scheme() scheme { return schemes[d.Scheme] }

// mac returns the signature of a delivery by a secret and a hash, without a prefix.
func (d *delivery) mac(stamp, secret string, sum func() hash.Hash) string {
	key := []byte(secret)
	if d.Scheme == "meta" {
		app, _, _ := strings.Cut(secret, ":")
		key = []byte(app)
	}
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok && d.Scheme != "stripe" {
		var err error
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			panic(err) // the secrets of this test are base64
		}
	}
	s := d.scheme()
	m := hmac.New(sum, key)
	m.Write(s.signed(stamp, d.Headers[s.id], d.Body))
	return s.encode(m.Sum(nil))
}

// signedBy returns the delivery at another time, signed by a secret and a hash.
func (d *delivery) signedBy(stamp, secret string, sum func() hash.Hash) *delivery {
	s, c := d.scheme(), d.clone()
	if s.time != "" {
		c.Headers[s.time] = stamp
	}
	value := s.prefix + c.mac(stamp, secret, sum)
	if s.stamped != "" {
		value = fmt.Sprintf(s.stamped, stamp) + value
	}
	c.Headers[s.signature] = value
	return c
}

// signed returns the delivery with the right signature.
func (d *delivery) signed() *delivery { return d.signedBy(d.stamp(), d.Secret, sha256.New) }

func (d *delivery) stamp() string { return strconv.FormatInt(d.Time, 10) }

func (d *delivery) clone() *delivery {
	c := *d
	c.Headers = maps.Clone(d.Headers)
	return &c
}

// with returns the delivery with another header; an empty value leaves it out.
func (d *delivery) with(header, value string) *delivery {
	c := d.clone()
	delete(c.Headers, header)
	if value != "" {
		c.Headers[header] = value
	}
	return c
}

func (d *delivery) withBody(body []byte) *delivery {
	c := d.clone()
	c.Body = body
	return c
}

// deliveries returns deliveries signed by the providers' libraries. The signatures must
// match the documentation, so that the mutants, which are signed here, are realistic.
func deliveries(t *testing.T, seed uint64, count int, now int64) []*delivery {
	t.Helper()
	install(t)
	command := exec.CommandContext(t.Context(), "node", "signers/sign.mjs", strconv.FormatUint(seed, 10), strconv.Itoa(count), strconv.FormatInt(now, 10))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("signers/sign.mjs: %v", err)
	}
	var list []*delivery
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		d := &delivery{}
		if err := json.Unmarshal(lines.Bytes(), d); err != nil {
			t.Fatal(err)
		}
		signed := d.signed()
		name := d.scheme().signature
		if d.scheme().library && d.Headers[name] != signed.Headers[name] {
			t.Fatalf("%s: the library signs %q, the documentation says %q", d.Scheme, d.Headers[name], signed.Headers[name])
		}
		list = append(list, signed)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(list) != count*len(schemes) {
		t.Fatalf("%d deliveries, not %d of each scheme", len(list), count)
	}
	return list
}

// install installs the libraries of signers/package-lock.json if they are missing. Tests that
// run at the same time, in any process, wait for each other.
func install(t *testing.T) {
	t.Helper()
	lock, err := os.Open("signers/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(lock.Name())
	if err != nil {
		t.Fatal(err)
	}
	const stamp = "signers/node_modules/.installed"
	want := fmt.Sprintf("%x", sha256.Sum256(text))
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return
	}
	tool(t, "", "../../scripts/need", "npm")
	tool(t, "signers", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.WriteFile(stamp, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

func tool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
