package component

import (
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"gatehouse/internal/wtf8"
)

// sha256Data is sha256 of the prelude.
func (i *instance) sha256Data(data uint64, encoding int) uint64 {
	d, ok := i.dataOf(data)
	if !ok {
		return thrownByHost
	}
	hash := sha256.New()
	i.hashed(hash, d)
	return i.encoded(hash.Sum(nil), encoding)
}

// urlParts are the members of a URL that can be set, by the numbers that the prelude has.
var urlParts = []func(u *whatwg.Url, value string){
	(*whatwg.Url).SetProtocol, (*whatwg.Url).SetUsername, (*whatwg.Url).SetPassword, (*whatwg.Url).SetHost, (*whatwg.Url).SetHostname,
	(*whatwg.Url).SetPort, (*whatwg.Url).SetPathname, (*whatwg.Url).SetSearch, (*whatwg.Url).SetHash,
}

// The parts before partPathname are of the authority or the scheme, those from partSearch
// on stand behind the path.
const (
	partPathname = 6
	partSearch   = 7
)

// url returns the parts of a URL as a JSON list of texts, null for a text that is none, or
// 0 beyond the bounds of one. given is a JSON list: a URL and its base, where that is not
// null; or, when part is not negative, a URL and the value to which that part of it is set.
func (i *instance) url(given uint64, part int) uint64 {
	text, ok := i.textOf(given)
	if !ok {
		return thrownByHost
	}
	var args [2]*string
	if len(text) > 2*MaxURL {
		return i.newText([]byte("0"))
	}
	if json.Unmarshal(text, &args) != nil || args[0] == nil {
		return jsNull
	}
	for _, one := range args {
		if one != nil {
			i.run.turns += urlTurns(*one)
		}
	}
	u, within := parseURL(*args[0], args[1], part)
	i.checkpoint()
	switch {
	case !within:
		return i.newText([]byte("0"))
	case u == nil:
		return jsNull
	}
	return i.newText(urlText(u))
}

// The parser and the writer of a URL take time by the square of these parts: 10 ms for as
// much as is allowed, seconds for 32 KiB of them.
const (
	maxURLAuthority = 2 << 10 // bytes of user, password, host and port
	maxURLSlashes   = 1000    // before the query
)

// urlTurns returns the work of parsing and writing a URL or a part of one, at most, in
// turns of the engine's loops.
func urlTurns(s string) int64 {
	path := beforeQuery(s)
	authority := min(len(path), maxURLAuthority)
	return int64(20*len(s) + authority*authority/4 + min(slashes(path), maxURLSlashes)*len(path)/8)
}

func beforeQuery(s string) string {
	if end := strings.IndexAny(s, "?#"); end >= 0 {
		return s[:end]
	}
	return s
}

// parseURL returns a URL, or nil for what is none; see instance.url. within is false
// when it, what it is made of, or the value is beyond the bounds of a URL.
func parseURL(text string, other *string, part int) (u *whatwg.Url, within bool) {
	var err error
	switch {
	case !withinURL(text) || other != nil && !partWithinURL(*other, part):
		return nil, false
	case part < 0 && other != nil:
		u, err = whatwg.ParseRef(*other, text)
	default:
		u, err = whatwg.Parse(text)
	}
	if err != nil || part >= len(urlParts) {
		return nil, true
	}
	if part >= 0 && other != nil {
		urlParts[part](u, *other)
	}
	if !withinURL(u.Href(false)) { // it may be longer than what it was made of
		return nil, false
	}
	return u, true
}

// partWithinURL reports whether a part of a URL, or its base where part is negative, is
// within the bounds of one.
func partWithinURL(value string, part int) bool {
	switch {
	case part < 0:
		return withinURL(value)
	case part < partPathname:
		return len(value) <= maxURLAuthority
	case part < partSearch:
		return slashes(value) <= maxURLSlashes
	}
	return true
}

// withinURL reports whether a text is within the bounds of a URL. What it takes for the
// authority contains that, whatever the text is resolved against.
func withinURL(s string) bool {
	s = beforeQuery(s)
	if len(s) <= min(maxURLAuthority, maxURLSlashes) { // nearly all are
		return true
	}
	if slashes(s) > maxURLSlashes {
		return false
	}
	rest := strings.TrimLeftFunc(ignoredInURL.Replace(s), func(r rune) bool { return r <= ' ' })
	scheme := urlScheme.FindString(rest)
	rest = rest[len(scheme):]
	special := false
	switch strings.ToLower(scheme) {
	case "http:", "https:", "ws:", "wss:", "ftp:", "file:":
		special = true
	}
	path := strings.TrimLeft(rest, `/\`)
	switch {
	case special: // any number of slashes, also none
		rest = path
	case scheme == "" && len(rest)-len(path) >= 2:
		rest = path
	case strings.HasPrefix(rest, "//"):
		rest = rest[2:]
	default:
		return true
	}
	ends := "/"
	if special {
		ends = `/\`
	}
	if end := strings.IndexAny(rest, ends); end >= 0 {
		rest = rest[:end]
	}
	return len(rest) <= maxURLAuthority
}

// The parser leaves out what stands for ignoredInURL wherever it is.
var (
	ignoredInURL = strings.NewReplacer("\t", "", "\n", "", "\r", "")
	urlScheme    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

func slashes(s string) int { return strings.Count(s, "/") + strings.Count(s, `\`) }

// urlText returns the parts of a URL in the order of the prelude.
func urlText(u *whatwg.Url) []byte {
	origin := "null"
	switch u.Scheme() {
	case "http", "https", "ws", "wss", "ftp":
		origin = u.Protocol() + "//" + u.Host()
	}
	text := []byte{'['}
	for n, part := range []string{
		u.Href(false), origin, u.Protocol(), u.Username(), u.Password(), u.Host(), u.Hostname(), u.Port(), u.Pathname(), u.Search(), u.Hash(),
	} {
		if n > 0 {
			text = append(text, ',')
		}
		text = wtf8.AppendUTF8(text, part)
	}
	return append(text, ']')
}

// maxForm bounds what form reads, in bytes: it works in the host's memory.
const maxForm = 1 << 20

// form reads or writes application/x-www-form-urlencoded: a text becomes a JSON list
// of names and values in turn, and with write such a list becomes a text. It returns
// null beyond maxForm.
func (i *instance) form(given uint64, write bool) uint64 {
	text, ok := i.textOf(given)
	if !ok {
		return thrownByHost
	}
	if len(text) > maxForm {
		return jsNull
	}
	i.run.turns += int64(len(text))
	if !write {
		out := []byte{'['}
		for pair := range strings.SplitSeq(string(i.toUTF8(text)), "&") {
			if pair == "" {
				continue
			}
			name, value, _ := strings.Cut(pair, "=")
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(wtf8.AppendUTF8(out, unescaped(name)), ',')
			out = wtf8.AppendUTF8(out, unescaped(value))
		}
		i.checkpoint()
		return i.newText(append(out, ']'))
	}
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return jsNull
	}
	var out strings.Builder
	for n := 0; n+1 < len(list); n += 2 {
		if n > 0 {
			out.WriteByte('&')
		}
		out.WriteString(formEscaped(list[n]) + "=" + formEscaped(list[n+1]))
	}
	i.checkpoint()
	return i.newText([]byte(out.String()))
}

// unescaped decodes a name or value of a form; a % that begins no escape stays.
func unescaped(s string) string {
	s = strings.ReplaceAll(s, "+", " ")
	out := make([]byte, 0, len(s))
	for at := 0; at < len(s); at++ {
		if s[at] == '%' && at+2 < len(s) {
			if c, err := url.PathUnescape(s[at : at+3]); err == nil {
				out = append(out, c...)
				at += 2
				continue
			}
		}
		out = append(out, s[at])
	}
	return string(out) // what is not UTF-8 becomes U+FFFD when it is quoted
}

// formEscaped encodes a name or value of a form, as browsers do.
func formEscaped(s string) string {
	s = url.QueryEscape(s) // which escapes * and leaves ~
	return strings.ReplaceAll(strings.ReplaceAll(s, "%2A", "*"), "~", "%7E")
}
