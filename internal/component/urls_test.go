package component_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/component"
)

// TestURL compares URL and URLSearchParams with what the URL standard says.
func TestURL(t *testing.T) {
	for body, want := range map[string]string{
		`const u = new URL('HTTPS://user:p%40ss@Example.COM:443/a/../b?x=1#top'); return [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.port, u.pathname, u.search, u.hash].join(' ')`: "https://user:p%40ss@example.com/b?x=1#top https://example.com https: user p%40ss example.com  /b ?x=1 #top",
		`return new URL('../x?y#z', 'http://h:8080/a/b/c').href`:                                                                                                                                                    "http://h:8080/a/x?y#z",
		`return new URL('http://münchen.example/ä?ö').href`:                                                                                                                                                         "http://xn--mnchen-3ya.example/%C3%A4?%C3%B6",
		`try { new URL('/x') } catch (e) { return e instanceof TypeError && e.message }`:                                                                                                                            "Invalid URL",
		`return [URL.canParse('x'), URL.canParse('x', 'http://h'), URL.parse('x')].join()`:                                                                                                                          "false,true,",
		`const u = new URL('http://h/?a=1'); u.searchParams.append('b c', 'ü&'); u.pathname = '/p q'; u.hash = 'x'; u.port = '99'; return u.href`:                                                                   "http://h:99/p%20q?a=1&b+c=%C3%BC%26#x",
		`const u = new URL('http://h/?a=1'); const p = u.searchParams; u.search = '?b=2'; return p.get('b') + p.has('a') + u.searchParams.size`:                                                                     "2false1",
		`const u = new URL('http://h/?a=1'); u.searchParams.delete('a'); return u.href + JSON.stringify({ u })`:                                                                                                     `http://h/{"u":"http://h/"}`,
		`const u = new URL('http://h/'); u.port = 'x'; u.protocol = 'mailto'; try { u.href = 'no' } catch { return u.href }`:                                                                                        "http://h/",
		`return new URL('data:text/plain,x').origin`:                                                                                                                                                                "null",
		`const p = new URLSearchParams({ b: '*-._~', a: 1 }); p.sort(); return String(p)`:                                                                                                                           "a=1&b=*-._%7E",
		`const p = new URLSearchParams([['a', 1], ['b', 2], ['a', 3]]); p.set('a', 4); p.append('c', '😀'); return [...p].join(';') + ' ' + p + ' ' + p.has('a', '3')`:                                               "a,4;b,2;c,😀 a=4&b=2&c=%F0%9F%98%80 false",
		`return [sha256(''), sha256('ü', 'base64'), crypto.sha256(new Uint8Array([1]), 'base64url')].join(' ')`:                                                                                                     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 YHR0ykdalyTXNgq6caVtXfd+YTUOP3JM+h9G6Ffi2F8= S_USLzRFVMU73i67jNK349FgCtYxw4Wl18ziPHeFRZo",
		`return [(1234.005).toFixed(2), (0.000001234).toString(), (1e21).toString(), (1.45).toFixed(1), (25).toString(36), (-1.5).toFixed(0), (123.456).toPrecision(4), (0).toFixed(2), (1e-7).toFixed(10)].join()`: "1234.01,0.000001234,1e+21,1.4,p,-2,123.5,0.00,0.0000001000",
	} {
		if got := value(t, body); got != want {
			t.Errorf("%s\n got %q\nwant %q", body, got, want)
		}
	}
}

// TestLongURLs shows that a URL is bounded, and that its work counts.
func TestLongURLs(t *testing.T) {
	if got := value(t, `return [URL.canParse('http://h/' + 'x'.repeat(1 << 14)), URL.canParse('http://h/' + 'x'.repeat(1 << 15))]`); got.([]any)[0] != true || got.([]any)[1] != false {
		t.Error(got)
	}
	for within, beyond := range map[string]string{
		"'http://' + 'u'.repeat(2045) + '@h/' + 'x'.repeat(9000)": "'http://' + 'u'.repeat(2047) + '@h/'",
		"'x://' + 'h'.repeat(2048) + '?' + '@'.repeat(9000)":      "'x://' + 'h'.repeat(2049) + '?'",
		"'http://h' + '/'.repeat(998) + '?' + '/'.repeat(9000)":   "'http://h' + '/'.repeat(999)",
		"'data:' + 'x'.repeat(9000)":                              "' \\thtt\\np:' + ':'.repeat(2049) + '@h'",
		"'x://h/' + '\"'.repeat(3000)":                            "'x://' + '\"'.repeat(1000) + '@h'", // which is %22
		"'a'.repeat(3000), 'http://h/'":                           "'//h', 'http://' + 'u'.repeat(2049) + '@h'",
		"'../'.repeat(400), 'http://h/' + 'a/'.repeat(900)":       "'/'.repeat(1001), 'http://h'",
		"'/' + 'a'.repeat(3000), 'x://h'":                         "'//h' + '\\\\' + 'a'.repeat(2047) + '@h', 'x://h'",
	} {
		if got := value(t, "return [URL.canParse("+within+"), URL.canParse("+beyond+")]"); got.([]any)[0] != true || got.([]any)[1] != false {
			t.Errorf("%s and %s: %v", within, beyond, got)
		}
	}
	const bounds = "TypeError: URL: expected at most 32 KiB, of which 2 KiB are user and host, and 1,000 slashes"
	for body, want := range map[string]string{
		`u.searchParams.append('b', 'x'.repeat(1 << 15))`:                 bounds,
		`u.pathname = 'x'.repeat(1 << 15)`:                                bounds,
		`u.username = 'u'.repeat(2049)`:                                   bounds,
		`u.password = '"'.repeat(1000)`:                                   bounds,
		`u.host = 'h'.repeat(2049)`:                                       bounds,
		`u.pathname = '/'.repeat(1001)`:                                   bounds,
		`u.href = 'http://h/' + 'x'.repeat(1 << 15)`:                      "TypeError: Invalid URL",
		`new URLSearchParams('x'.repeat((1 << 20) + 1))`:                  "TypeError: URLSearchParams: expected at most 1 MiB",
		`String(new URLSearchParams({a: 'x'.repeat(1 << 20)}))`:           "TypeError: URLSearchParams: expected at most 1 MiB",
		`u.searchParams.append('b', '@'.repeat(200)); return 'as it is '`: "as it is ",
	} {
		if got := value(t, "const u = new URL('http://h/?a=1'); try { "+body+" } catch (e) { return e + u }"); got != want+"http://h/?a=1" && got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
	if got := value(t, `const u = new URL('http://h/'); u.search = '@'.repeat(200); u.searchParams.append('b', '@'); return u.search.length`); got != float64(1+200*3+len("=&b=%40")) {
		t.Error(got)
	}
	body := "const u = 'http://h/' + '../a/'.repeat(400); for (;;) URL.canParse(u)"
	r := run(t, compile(t, "export default () => {"+body+"}"), runFor(100))
	if r.Failed == nil || !strings.Contains(r.Failed.Message, "did not finish") {
		t.Errorf("%+v", r.Failed)
	}
}

// TestManyParameters shows that a change of many parameters takes a pass over them, where
// 100,000 took more than the 5 s of a run. An iteration goes on by index, as the URL standard says.
func TestManyParameters(t *testing.T) {
	const many = `const p = new URLSearchParams(new URLSearchParams('a=1&b=2&'.repeat(20000))); `
	for body, want := range map[string]string{
		many + `p.delete('a'); return p.size + ' ' + String(p).slice(0, 7)`:                                                           "20000 b=2&b=2",
		many + `p.delete('a', '2'); p.delete('b', '2'); return p.size + ' ' + String(p).slice(0, 7)`:                                  "20000 a=1&a=1",
		many + `p.set('b', '3'); return p.size + ' ' + String(p).slice(0, 11)`:                                                        "20001 a=1&b=3&a=1",
		`const p = new URLSearchParams('a=1&b=2&c=3'), seen = []; for (const [k] of p) { seen.push(k); p.delete(k) } return seen + p`: "a,cb=2",
		`const p = new URLSearchParams('a=1'); p.set('b', '2'); p.set('a', '3'); return String(p)`:                                    "a=3&b=2",
	} {
		if got := value(t, body); got != want {
			t.Errorf("%s: %v, want %s", body, got, want)
		}
	}
}

// TestCompiledURLs shows that a top level that parses URLs without end is at fault for its
// work, like any other, and not the service for its time.
func TestCompiledURLs(t *testing.T) {
	for _, url := range []string{"'http://' + '@'.repeat(2000) + 'h'", "'http://' + ':'.repeat(2000) + '@h'", "'http://h' + ('/' + 'a'.repeat(29)).repeat(990)"} {
		_, err := compileAll(t, component.Source{Text: "const u = " + url + "; for (;;) URL.canParse(u); export default () => 1"})
		var wrong *component.SourceError
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func runFor(ms int) component.Run {
	return component.Run{Tenant: "t", Timeout: time.Duration(ms) * time.Millisecond}
}
