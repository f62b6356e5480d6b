//go:build !race

package audit

import (
	"strings"
	"testing"
)

// A body that the service rendered is read only as far as it is kept. Wherever
// that ends, in a name, a token or a value, nothing of a secret is left.
func TestNothingOfASecretThatStraddlesTheCutIsKept(t *testing.T) {
	for name, secret := range map[string]string{
		"member": `{"token":"` + canary + `"}`, "escaped name": `{"\u0074oken":"` + canary + `"}`,
		"our token": `{"a":"svc_api_` + canary7 + canary7 + `"}`, "escaped token": `{"a":"svc\u005fwhk_` + canary7 + canary7 + `"}`,
		"JSON in a string": `{"a":"{\"secret\":\"` + canary + `\"}"}`,
	} {
		for before := maxBody - len(secret) - 80; before < maxBody+10; before++ {
			body := `["` + strings.Repeat("x", before) + `",` + secret + `,"` + strings.Repeat("y", 3*maxBody) + `"]`
			for _, rendered := range []bool{true, false} {
				if !rendered && before%16 > 0 {
					continue // it is parsed to its end, which takes long
				}
				_, response := column(t, &Event{ResponseBody: []byte(body), ResponseContentType: jsonType, Rendered: rendered})
				if strings.Contains(response, canary[:3]) || strings.Contains(response, canary7[:3]) || !strings.Contains(response, `"truncated":true`) ||
					len(response) > maxBody+100 {
					t.Fatalf("%s, %d bytes before, rendered %v: …%s", name, before, rendered, response[len(response)-100:])
				}
			}
		}
	}
}
