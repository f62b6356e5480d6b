package verifiers_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// verdictCase is a delivery, an endpoint's secrets, and the expected outcome.
type verdictCase struct {
	name    string
	d       *delivery
	file    string // of the verifier
	config  []byte
	accept  bool
	id      string // of the event, if accepted
	message string // a part of the rejection's message; "" for any
	// thrown is set if the verifier may reject by an error rather than by fail().
	thrown bool
}

// suite collects cases derived from deliveries.
type suite struct {
	random *rand.Rand
	now    int64
	cases  []verdictCase
}

func config(secrets ...any) []byte {
	c := map[string]any{"slug": "hook", "webhook_secret": nil, "webhook_secrets": append([]any{}, secrets...)}
	if len(secrets) > 0 {
		c["webhook_secret"] = secrets[0]
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return text
}

// accept adds a delivery that must be accepted. The event's id is the delivery's or, if
// that is empty, the signature in hex.
func (s *suite) accept(name string, d *delivery, secrets ...any) {
	id := d.ID
	if id == "" {
		id = d.mac(d.Headers[d.scheme().time], d.Secret, sha256.New)
	}
	s.cases = append(s.cases, verdictCase{name: name, d: d, file: d.scheme().file, config: config(secrets...), accept: true, id: id})
}

// reject adds a delivery that must be rejected. Without secrets, the endpoint has the
// delivery's own secret.
func (s *suite) reject(name string, d *delivery, secrets ...any) *verdictCase {
	if len(secrets) == 0 {
		secrets = []any{d.Secret}
	}
	s.cases = append(s.cases, verdictCase{name: name, d: d, file: d.scheme().file, config: config(secrets...)})
	return &s.cases[len(s.cases)-1]
}

// derive adds all cases of one delivery. other is a delivery of the same scheme, and
// foreign is one of another scheme.
func (s *suite) derive(d, other, foreign *delivery) {
	s.secrets(d, other.Secret)
	s.bodies(d, other)
	s.signatures(d)
	s.ids(d)
	if d.scheme().timed {
		s.times(d)
	}
	s.contents(d)
	crossed := s.reject("another provider's delivery", foreign, foreign.Secret)
	crossed.file = d.scheme().file
}

func (s *suite) secrets(d *delivery, other string) {
	s.accept("as made", d, d.Secret)
	s.accept("by the second secret", d, other, d.Secret)
	s.accept("by the first of two secrets", d, d.Secret, other)
	s.accept("with an empty previous secret", d, d.Secret, "")
	s.accept("with a null previous secret", d, d.Secret, nil)
	s.reject("by another's secret", d, other)
	s.reject("by two others' secrets", d, other, other+"AAAA").thrown = d.scheme().signedID // mostly not base64
	s.reject("by the secret that was previous to the previous", d, other, other, d.Secret)
	s.reject("with an empty secret", d, "")
	s.reject("with an empty secret, and a previous one that fits", d, "", d.Secret)
	s.reject("with a null secret, and a previous one that fits", d, nil, d.Secret)
	none := s.reject("with no secrets", d)
	none.config = config()
	undeclared := s.reject("with a config without secrets", d)
	undeclared.config, undeclared.thrown = []byte(`{"slug":"hook"}`), true
	s.reject("signed with the empty key", d.signedBy(d.stamp(), "", sha256.New), "")
	if d.scheme().signedID {
		s.accept("by a secret without its prefix", d, strings.TrimPrefix(d.Secret, "whsec_"))
		s.reject("by a key of no bytes", d.signedBy(d.stamp(), "whsec_", sha256.New), "whsec_").thrown = true
		s.reject("by a secret that is not base64", d, "whsec_!"+d.Secret).thrown = true
	}
}

// bodies adds cases with a changed body, which the signature does not match.
func (s *suite) bodies(d, other *delivery) {
	for range 3 {
		s.reject("one bit of the body", d.withBody(s.flip(d.Body, 8)))
	}
	first := bytes.Clone(d.Body)
	first[0] ^= 1
	s.reject("the body's first bit", d.withBody(first))
	s.reject("a body cut short", d.withBody(d.Body[:len(d.Body)-1]))
	s.reject("a body with a byte more", d.withBody(append(bytes.Clone(d.Body), ' ')))
	s.reject("no body", d.withBody(nil))
	s.reject("another event's body", d.withBody(append(bytes.Clone(other.Body), '\n')))
	s.reject("a body that is not UTF-8 and not signed", d.withBody(append(bytes.Clone(d.Body), 0xff)))
}

// flip changes one of the lowest bits of a byte.
func (s *suite) flip(b []byte, bits int) []byte {
	c := bytes.Clone(b)
	c[s.random.IntN(len(c))] ^= 1 << s.random.IntN(bits)
	return c
}

func (s *suite) signatures(d *delivery) {
	scheme := d.scheme()
	name := scheme.signature
	value := d.Headers[name]
	stamp := d.Headers[scheme.time]
	if scheme.stamped != "" {
		stamp = d.stamp()
	}
	lead := strings.TrimSuffix(value, d.mac(stamp, d.Secret, sha256.New)) // the text before the signature
	mac := value[len(lead):]
	for range 4 {
		s.reject("one bit of the signature", d.with(name, string(s.flip([]byte(value), 7))))
	}
	s.reject("no signature", d.with(name, ""))
	s.reject("a signature cut short", d.with(name, value[:len(value)-1]))
	s.reject("half a signature", d.with(name, lead+mac[:len(mac)/2]))
	s.reject("a signature and more", d.with(name, value+"0"))
	s.reject("a signature's prefix alone", d.with(name, lead))
	s.reject("a signature under another header", d.with(name, "").with("x-"+name, value))
	s.reject("a signature in another case", d.with(name, lead+otherCase(mac)))
	s.reject("SHA-1 instead of SHA-256", d.signedBy(d.stamp(), d.Secret, sha1.New))
	s.reject("SHA-512 instead of SHA-256", d.signedBy(d.stamp(), d.Secret, sha512.New))
	s.reject("the signature in another encoding", d.with(name, lead+recoded(mac)))
	for _, wrong := range wrongPrefixes(d.Scheme, lead) {
		s.reject("prefix "+wrong, d.with(name, wrong+mac))
	}
	repeated := d.with(name, value+", "+value)
	if scheme.signedID {
		s.accept("a signature header twice: a longer list", repeated, d.Secret)
		s.accept("a right signature among others", d.with(name, "v1a,"+mac+" v1,"+recoded(mac)+" "+value+" v2,x"), d.Secret)
		s.reject("no right signature among others", d.with(name, "v1a,"+mac+" v1,"+recoded(mac)+" v2,"+mac))
	} else {
		s.reject("a signature header twice", repeated)
	}
	if d.Scheme == "paddle" {
		s.paddle(d, stamp, mac)
	}
	if d.Scheme == "stripe" {
		wrong := strings.Repeat("0", 64)
		s.accept("a right signature among others", d.with(name, "t="+stamp+",v1="+wrong+",v1="+mac+",v0="+wrong), d.Secret)
		s.accept("spaces after commas", d.with(name, strings.ReplaceAll(value, ",", ", ")), d.Secret)
		s.reject("no right signature among others", d.with(name, "t="+stamp+",v1="+wrong+",v0="+mac))
		s.reject("no time stamp", d.with(name, "v1="+mac))
		s.reject("two time stamps", d.with(name, "t="+stamp+","+value))
	}
}

// paddle adds cases of Paddle's header with several signatures.
func (s *suite) paddle(d *delivery, stamp, mac string) {
	const name = "paddle-signature"
	wrong := strings.Repeat("0", 64)
	s.accept("a right signature among others", d.with(name, "ts="+stamp+";h1="+wrong+";h1="+mac+";h2="+wrong), d.Secret)
	s.accept("the time stamp after the signature", d.with(name, "h1="+mac+";ts="+stamp), d.Secret)
	s.reject("no right signature among others", d.with(name, "ts="+stamp+";h1="+wrong+";h2="+mac))
	s.reject("no time stamp", d.with(name, "h1="+mac))
	s.reject("two time stamps", d.with(name, "ts="+stamp+";"+d.Headers[name]))
	s.reject("commas", d.with(name, "ts="+stamp+",h1="+mac))
}

func wrongPrefixes(scheme, lead string) []string {
	switch scheme {
	case "stripe":
		return []string{strings.Replace(lead, "v1=", "v0=", 1), strings.Replace(lead, "v1=", "V1=", 1), strings.TrimSuffix(lead, "v1="), strings.TrimSuffix(lead, "=")}
	case "github", "meta":
		return []string{"", "sha1=", "SHA256=", "sha256:", "sha512=", "sha256= "}
	case "slack":
		return []string{"", "v1=", "v0:", "V0="}
	case "standard", "svix":
		return []string{"", "v1a,", "v2,", "v1=", "V1,"}
	default:
		return []string{"sha256=", "v1=", " "}
	}
}

// otherCase returns mac in upper case or, if it is in upper case already, in lower case
// with an "A" appended. The result always differs from mac.
func otherCase(mac string) string {
	upper := strings.ToUpper(mac)
	if upper != mac {
		return upper
	}
	return strings.ToLower(mac) + "A"
}

// recoded returns a hex signature in base64, or a base64 signature in hex.
func recoded(mac string) string {
	if sum, err := hex.DecodeString(mac); err == nil {
		return base64.StdEncoding.EncodeToString(sum)
	}
	sum, err := base64.StdEncoding.DecodeString(mac)
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(sum)
}

// ids adds cases with a changed id, which is rejected if the signature covers it. GitHub
// and Shopify do not sign the id, so their events have the id that was sent.
func (s *suite) ids(d *delivery) {
	scheme := d.scheme()
	if scheme.id == "" {
		return
	}
	id := d.Headers[scheme.id]
	if scheme.signedID {
		for range 3 {
			s.reject("one bit of the id", d.with(scheme.id, string(s.flip([]byte(id), 7))))
		}
		other := map[string]string{"standard": "svix-id", "svix": "webhook-id"}[d.Scheme]
		s.reject("the id under the other name", d.with(scheme.id, "").with(other, id))
	} else {
		changed := d.with(scheme.id, id+"0")
		changed.ID = id + "0"
		s.accept("another id, which is not signed", changed, d.Secret)
		s.reject("no kind", d.with(scheme.kind, ""))
		s.reject("two kinds", d.with(scheme.kind, d.Kind+", "+d.Kind))
	}
	s.reject("no id", d.with(scheme.id, ""))
	s.reject("two ids", d.with(scheme.id, id+", "+id))
}

func (s *suite) times(d *delivery) {
	at := func(stamp string) *delivery { return d.signedBy(stamp, d.Secret, sha256.New) }
	for _, offset := range []int64{-300, -1, 0, 1, 300} {
		fresh := at(strconv.FormatInt(s.now+offset, 10))
		fresh.Time = s.now + offset
		s.accept("signed at "+strconv.FormatInt(offset, 10), fresh, d.Secret)
	}
	now := strconv.FormatInt(s.now, 10)
	for _, stamp := range []string{
		strconv.FormatInt(s.now-301, 10), strconv.FormatInt(s.now+301, 10), strconv.FormatInt(s.now-86400, 10), strconv.FormatInt(s.now+1<<31, 10),
		now + "000", "-" + now, now + ".0", "0x684ee180", "", "0", "NaN", "now",
	} {
		s.reject("signed at "+stamp, at(stamp)).message = "not within 300 seconds"
	}
	if name := d.scheme().time; name != "" {
		stamp := d.Headers[name]
		s.reject("one bit of the time stamp", d.with(name, string(s.flip([]byte(stamp), 7))))
		s.reject("another time stamp", d.with(name, strconv.FormatInt(d.Time+1, 10)))
		s.reject("no time stamp", d.with(name, ""))
		s.reject("two time stamps", d.with(name, stamp+", "+stamp))
	}
}

// noEvent is the beginning of messages about bodies; messages about signatures begin with
// the name of a header.
const noEvent = "the "

// contents adds cases with a correct signature of a body that is not an event.
func (s *suite) contents(d *delivery) {
	for _, body := range []string{
		"", "[]", "null", "17", `"text"`, "{", `{"id":"evt_1","type":"a"}}`, "\ufeff{}", "id: evt_1", "{'a':1}",
		"{\"a\":\xff}", "{\"a\":\"\xed\xa0\x80\"}", "\xff\xfe", "a=%ff&b=1", "payload=[]", "a=1&a=2",
	} {
		s.reject("signed, but no event: "+strconv.Quote(body), d.withBody([]byte(body)).signed()).message = noEvent
	}
	at := bytes.LastIndexByte(d.Body, '"') // the end of the last string or name
	if at < 0 {
		at = len(d.Body) / 2
	}
	broken := slices.Insert(bytes.Clone(d.Body), at, '(', byte(0x80|s.random.IntN(128)), '(')
	s.reject("signed, but not UTF-8", d.withBody(broken).signed()).message = noEvent
}
