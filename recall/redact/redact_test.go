package redact_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall/redact"
)

// Property tests check 100 random cases each in make test, more in make verify-all.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(scale.Pure(100, 1_000))); err != nil {
		panic(err)
	}
	m.Run()
}

var plain = redact.New([]byte("a key"), redact.Options{})

// quoted returns a value as JSON.
func quoted(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestSecretsAreRedactedWhereverTheyStand(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, f := range fakes() {
		around := f.around
		if around == "" {
			around = "%s"
		}
		alone := fmt.Sprintf(around, f.secret)
		redacted := plain.Redact(alone)
		prefix := fmt.Sprintf("[REDACTED:%s:%d:", f.rule, utf8.RuneCountInString(f.secret))
		if strings.Contains(alone, "x"+f.secret+"x") {
			prefix = fmt.Sprintf("[REDACTED:%s:%d:", f.rule, len(f.secret)+2)
		}
		begin := strings.Index(redacted, prefix)
		if begin < 0 || strings.Contains(redacted, f.secret) || strings.Count(redacted, "[REDACTED:") != 1 {
			t.Errorf("%.60s…: got %.200s, want %s…]", alone, redacted, prefix)
			continue
		}
		placeholder := redacted[begin : begin+strings.IndexByte(redacted[begin:], ']')+1]
		for where, text := range map[string]string{
			"a sentence":       "Here it is: " + alone + ", please keep it.",
			"the end of one":   "The line was " + alone + ".",
			"a line":           "first\n" + alone + "\nlast",
			"brackets":         "call(" + alone + ")",
			"code":             "const line = `" + alone + "`;\n",
			"JSON":             quoted(t, map[string]any{"n": 1, "text": alone, "z": []string{"a\n" + alone + "\tb"}}),
			"JSON within JSON": quoted(t, map[string]any{"input": quoted(t, map[string]string{"a": "k:\n" + alone, "b": "c"})}),
		} {
			got := plain.Redact(text)
			if !strings.Contains(got, placeholder) || strings.Contains(got, f.secret) {
				t.Errorf("%.60s… in %s: got %.300s, want %s", alone, where, got, placeholder)
			}
			if strings.HasPrefix(where, "JSON") && !json.Valid([]byte(got)) {
				t.Errorf("%.60s… in %s: %.300s is not JSON any more", alone, where, got)
			}
		}
	}
}

// words are words that documents write instead of a secret. A secret that contains one is still a secret.
var words = []string{"false", "true", "null", "test", "token", "password", "change" + "me", "xxxx", "pwd", "EXAMPLE",
	"secret", "FALSE"}

func TestASecretThatContainsAWordIsRedacted(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	const control = "kwzqj" // no word: if these letters fit, the secret may contain letters here
	for _, f := range fakes() {
		for _, word := range words {
			for name, pos := range map[string]int{"in its middle": len(f.secret) / 2, "at its end": len(f.secret) - len(word)} {
				if pos < len(f.secret)/3 || pos+len(word) > len(f.secret) || strings.Contains(f.secret, "\n") {
					continue
				}
				insert := func(letters string) (string, bool) {
					secret := f.secret[:pos] + letters + f.secret[pos+len(letters):]
					text := secret
					if f.around != "" {
						text = strings.Replace(f.around, "%s", secret, 1)
					}
					return text, !strings.Contains(plain.Redact(text), secret)
				}
				letters := strings.Repeat(control, 6)[:len(word)]
				if strings.ToUpper(word) == word {
					letters = strings.ToUpper(letters)
				}
				if _, isSecret := insert(letters); !isSecret {
					continue // the secret must not contain letters there
				}
				if text, redacted := insert(word); !redacted && !strings.HasPrefix(f.rule+word, "aws-access-tokenEXAMPLE") {
					t.Errorf("%s with %q %s stays in clear: %s", f.rule, word, name, text)
				}
			}
		}
	}
}

func TestNoRuleExemptsASecretThatContainsAWord(t *testing.T) {
	t.Parallel()
	for _, word := range append(words, "s."+random("vault", small, 24)) {
		for _, start := range []string{"Zq7", "", "maria:", "maria:Zq7"} {
			secret := start + word + "9Rk"
			if ids := redact.Exempting(secret); len(ids) > 0 {
				t.Errorf("%q is exempt from %d rules, %s among them", secret, len(ids), ids[0])
			}
		}
	}
	for _, secret := range []string{"true", "False", "null", "****", "$TOKEN", "${TOKEN}", "{{ token }}"} {
		if ids := redact.Exempting(secret); len(ids) < 200 {
			t.Errorf("%q is exempt from %d rules only", secret, len(ids))
		}
	}
}

func TestAPlaceholderTellsSecretsApart(t *testing.T) {
	t.Parallel()
	a, b := "ghp"+"_"+random("a", alnum, 36), "ghp"+"_"+random("b", alnum, 36)
	first, again, other := plain.Redact(a), plain.Redact(a), plain.Redact(b)
	if first != again || first == other {
		t.Errorf("got %s and %s for one secret, %s for another", first, again, other)
	}
	if keyed := redact.New([]byte("another"), redact.Options{}).Redact(a); keyed == first {
		t.Errorf("under another key: got %s again", keyed)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if got := plain.Redact("x " + a + "\n" + b); got != "x "+first+"\n"+other {
				t.Errorf("at the same time: got %s", got)
			}
		})
	}
	wait.Wait()
}

// What only looks like a placeholder is read as other text.
func TestNoSecretHidesInAPlaceholder(t *testing.T) {
	t.Parallel()
	sum, token := random("h", "0123456789ABCDEFabcdef", 40), "ghp"+"_"+random("p", alnum, 36)
	for name, text := range map[string]string{
		"a long hash":    "-----BEGIN PRIVATE KEY-----\n[REDACTED:named-secret:40:" + sum + "]",
		"a rule":         "[REDACTED:" + token + ":40:0123abcd]",
		"a length":       "[REDACTED:named-secret:" + token + ":0123abcd]",
		"a hash":         "[REDACTED:named-secret:40:" + token + "]",
		"a fourth field": "[REDACTED:named-secret:40:0123abcd:" + token + "]",
		"an open end":    "[REDACTED:named-secret:40:" + token,
	} {
		if got := plain.Redact(text); strings.Contains(got, sum) || strings.Contains(got, token) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestSecretsThatOverlapAreOne(t *testing.T) {
	t.Parallel()
	key := "ghp" + "_" + random("u", alnum, 36)
	for text, want := range map[string]string{
		"https://me:" + key + "@github.com/x": "https://me:[REDACTED:",
		"Authorization: Bearer " + key:        "Authorization: Bearer [REDACTED:",
		"Authorization: token " + key + "\n":  "Authorization: token [REDACTED:",
	} {
		got := plain.Redact(text)
		if !strings.HasPrefix(got, want) || strings.Count(got, "REDACTED") != 1 || strings.Contains(got, key[8:]) {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestKeysInCodeAndCutOffKeysAreRedacted(t *testing.T) {
	t.Parallel()
	lines := []string{random("1", b64, 64), random("2", b64, 64), random("3", b64, 64)}
	begin, end := "-----BEGIN RSA "+"PRIVATE KEY-----", "-----END RSA "+"PRIVATE KEY-----"
	for name, text := range map[string]string{
		"cut off":             begin + "\n" + strings.Join(lines, "\n"),
		"cut off in a result": "$ head key.pem\n" + begin + "\n" + strings.Join(lines, "\n") + "\n\n$ ls -l",
		"with headers": begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n\n" + strings.Join(lines, "\n") +
			"\n" + end,
		"indented":    "key: |\n  " + begin + "\n  " + strings.Join(lines, "\n  ") + "\n  " + end,
		"on one line": begin + " " + strings.Join(lines, " ") + " " + end,
		"with CRLF":   begin + "\r\n" + strings.Join(lines, "\r\n") + "\r\n" + end,
		"with numbered lines": "     1\t" + begin + "\n     2\t" + lines[0] + "\n     3\t" + lines[1] +
			"\n     4\t" + lines[2] + "\n     5\t" + end,
		"quoted": "> " + begin + "\n> " + strings.Join(lines, "\n> ") + "\n> " + end,
		"strings of a program": `"` + begin + `\n" +` + "\n\t" + `"` + strings.Join(lines, `\n" +`+"\n\t"+`"`) + `\n" +` +
			"\n\t" + `"` + end + `\n"`,
	} {
		got, inJSON := plain.Redact(text), plain.Redact(quoted(t, []string{text}))
		for _, line := range lines {
			if strings.Contains(got, line[5:40]) || strings.Contains(inJSON, line[5:40]) {
				t.Errorf("a key %s: got %s\n%s", name, got, inJSON)
				break
			}
		}
		if !json.Valid([]byte(inJSON)) {
			t.Errorf("a key %s: %s is not JSON any more", name, inJSON)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	t.Parallel()
	const uuid = "3f2b8c1d-9e4a-4f6b-8a7c-0d1e2f3a4b5c"
	sha1, sha256 := random("sha", hex, 40), random("sum", hex, 64)
	for _, text := range []string{
		"", "commit " + sha1, "sha256:" + sha256, "key=" + sha256,
		`{"sentry": "` + sha256 + `", "discord_id": 123456789012345678}`,
		"bitbucket = " + random("md5", hex, 32), "jira: " + sha1, "https://sourcegraph.com/x@" + sha1,
		`"heroku": "` + uuid + `"`,
		uuid, "agent-" + uuid, "api_key_id = " + uuid, "message-" + uuid,
		"data:image/png;base64," + random("image", b64, 200_000),
		"iVBORw0KGgo" + strings.Repeat("A", 5000) + random("zeros", b64, 100) + strings.Repeat("EAAA", 200) + "==",
		"/usr/local/lib/python3.12/site-packages/sklearn/linear_model/_base.py:123",
		`C:\npm_cache\tokens\secret.txt`,
		"func (s *Store) authorization(token string) error { return s.keys.Lookup(token) }",
		`req.Header.Set("Authorization", "Bearer "+token)`, "Authorization: Bearer $TOKEN",
		"Authorization: Bearer <your token here>",
		"Authorization: Bearer YOUR_API_KEY", "headers: { Authorization: `Bearer ${process.env.OPENAI_API_KEY}` }",
		"Authorization: required for every route", "Authorization: Basic authentication is described in RFC 7617",
		"postgres://loci:$PASSWORD@localhost/loci", "https://{user}:{password}@example.com",
		"https://user:password@example.com/", "https://user:****@example.com", "http://localhost:8283/v1/agents",
		"see https://example.com/a:b@c and mail me@example.com", "http://localhost:8080/@scope/x", "redis://h:6379/0?a=b@c",
		"https://someone@example.com/x", "https://release-engineering-2024@example.com/x.git", "postgres://h:5432/x@y",
		"curl -u user:password https://x", "curl -u $USER:$PASS https://x", "curl -u <user>:<pass> https://x",
		"ask curl whether -u is the flag: it is", "SKELETON SK-1234 SKU0123", "Authorization: 2024-01-01-10-00",
		"Authorization: Digest and Basic differ: a response=none is refused",
		`fmt.Sprintf("postgres://%s:%s@%s/%s", user, password, host, name)`, "git@github.com:loci-memory/loci.git",
		"the keys of Loci begin with loci_, those of OpenAI with sk-proj-, of GitHub with ghp_ and of AWS with AKIA",
		"AKIA" + "IOSFODNN7" + "EXAMPLE", "loci_" + strings.Repeat("a", 40),
		"sk-learn-contrib-imbalanced-ensemble-classifiers",
		"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
		"-----BEGIN CERTIFICATE-----\n" + random("cert", b64, 64) + "\n-----END CERTIFICATE-----",
		`if !bytes.HasPrefix(data, []byte("-----BEGIN PRIVATE KEY-----")) { ` +
			`return errors.New("the file has no private key in the format of PEM") }`,
		"<div class=\"sk-circle sk-fading-circle\"></div>", "Straße, 日本語, emoji 🎉 and \x00 nothing else",
		"[REDACTED:" + "x:1:00000000]",
	} {
		if got := plain.Redact(text); got != text {
			t.Errorf("%.80s: got %.200s", text, got)
		}
	}
}

// Some programs escape characters in JSON strings although they need not.
func TestEscapesHideNoSecret(t *testing.T) {
	t.Parallel()
	key := "hp" + "_" + random("escape", alnum, 36)
	for _, text := range []string{
		`{"k":"\u0067` + key + `"}`, `{"k":"{\"a\":\"\\u0067` + key + `\"}"}`, `log: {"k": "\u0067` + key,
		`{"dsn":"postgres:\/\/bob:` + key + `@db\/x"}`, `{"dsn":"postgres:\/\/bob:a\/` + key + `@db\/x"}`,
		`{"h":"Authorization: Bearer \u002b` + key + `"}`, `{"h":"Authorization: Bearer abcdef0123\/` + key + `"}`,
	} {
		got := plain.Redact(text)
		if strings.Contains(got, key) || strings.HasPrefix(text, "{") && !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s", text, got)
		}
	}
	for _, text := range []string{`{"url":"https:\/\/example.com\/a:b@c","t":"caf\u00e9 \u0026 \u0022x\u0022"}`,
		`s.replace(/https?:\/\/([^:]+):([^@]+)@/, "")`} {
		if got := plain.Redact(text); got != text {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestEntropyIsOptIn(t *testing.T) {
	t.Parallel()
	text := `row_key = "` + random("generic", alnum, 40) + `"` + "\n"
	if got := plain.Redact(text); got != text {
		t.Errorf("by default: got %s", got)
	}
	got := redact.New(nil, redact.Options{Entropy: true}).Redact(text)
	if !strings.HasPrefix(got, `row_key = "[REDACTED:generic-api-key:40:`) {
		t.Errorf("by entropy: got %s", got)
	}
}

// Values of environment and YAML settings are redacted, even if they look like names of variables.
func TestSettingsThatLookLikeNamesAreRedacted(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"API_KEY=acmeprod7781\n", "API_KEY=acme_prod_7781", "SERVICE_API_KEY=kqwv7781",
		"SECRET=kqwv-7781", "export ACCESS_TOKEN=kqwv7781xyzw; run", `{"env":"API_KEY=kqwv7781\nX=1"}`,
		"db:\n  password: sommer2024\n  user: bob\n",
		"db:\r\n  password: sommer2024\r\n", "password: sommer2024 # of the database", `password: sommer2024`,
		`{"text":"password: sommer2024\nuser: bob"}`, "- password:   kqwv-7781x", "spring.datasource.password: sommer2024",
		"api_key: kq7wv81x9z, please", "client_secret: k7Qv.8Zx-91Lm"} {
		if got := plain.Redact(text); !strings.Contains(got, "[REDACTED:named-secret:") {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

// Placeholders that documents and code write instead of a secret are not redacted.
func TestPlaceholdersOfSecretsStay(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"PASSWORD=changeme", "PASSWORD=changeme123", "DB_PASSWORD=${DB_PASSWORD_2}",
		"PASSWORD=$PASS1234", "API_KEY=<your key 1>", `api_key = os.environ["API_KEY_2"]`, `"api_key": null`,
		`api_key=os.environ["API_KEY_2"]`, "password = getpass2()", `password = user.password2`, `"api_key": 12345678`,
		`"password": "Password123"`, `"api_key": "your-api-key-here-1"`, `"api_key": "xxxxxxxx1234"`,
		`"secret": "V1SecretVolumeSource"`, `CLIENT_KEY = "storage_v1_client"`, `SECRET=/run/secrets/db_secret_1`,
		`login(password=hashed2Text, user=u)`, `"password": "********1"`, "password: string // at least 8",
		"--password-file=x1y2z3a4b5", "API_KEY=your_key_12345", "API_KEY=$PROD_KEY_2", "API_KEY=/run/secrets/key_1",
		"API_KEY=<api-key-1>", "const API_KEY = config2Value", "API_KEY=12345678", "password: ${DB_PASSWORD_2}",
		"password: changeme123", "  password: hashedText2\n", "password: user2.hashed",
		"password: must have 8 characters", "password: at2least, please", "api_key: from_config_2",
		"passwordPolicy: minimum8x",
		"secret: tls-cert-v1\n", "secretKeyRef: {name: db2, key: pw}", "password: !vault2 x", "password: {{ .Values.x2 }}",
		"Authorization: Bearer <token>", "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
		"Authorization: Bearer myAccessTokenOfTheServer", "max_tokens=10000000a", "passport=AB1234567x",
		"The password is a secret; the token=key of api_key=value was access_token=test1234."} {
		if got := plain.Redact(text); got != text {
			t.Errorf("%s: got %s, want it unchanged", text, got)
		}
	}
}
