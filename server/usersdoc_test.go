package server_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/servertest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// words splits a line of a shell into words, without quotes and with the values of variables.
func shellWords(line string, vars map[string]string) (words []string) {
	word, quote, in := "", rune(0), false
	value := func(text string) string { return os.Expand(text, func(name string) string { return vars[name] }) }
	var piece string
	end := func() {
		if quote != '\'' {
			piece = value(piece)
		}
		word, piece = word+piece, ""
	}
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			end()
			quote, in = r, true
		case r == quote:
			end()
			quote = 0
		case quote == 0 && (r == ' ' || r == '\n'):
			if end(); word != "" || in {
				words = append(words, word)
			}
			word, in = "", false
		default:
			piece += string(r)
		}
	}
	if end(); word != "" {
		words = append(words, word)
	}
	return words
}

// curl sends the request of a command of curl to the client's server.
func (c *client) curl(command string, vars map[string]string) servertest.Reply {
	c.t.Helper()
	method, target, body, headers := "GET", "", "", []string(nil)
	words := shellWords(command, vars)
	for i := 1; i < len(words); i++ {
		switch w := words[i]; w {
		case "-s":
		case "-H", "-d":
			i++
			if w == "-d" {
				method, body = "POST", words[i]
				continue
			}
			name, value, _ := strings.Cut(words[i], ": ")
			headers = append(headers, name, value)
		default:
			target = w
		}
	}
	return servertest.Send(c, method, target, body, headers...)
}

var (
	shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")
	salaries    = []string{"5000", "7000", "9000"}
)

// The commands of docs/users.md answer as it says.
func TestTheExamplesOfUsersAnswerAsTheySay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/users.md")
	if err != nil {
		t.Fatal(err)
	}
	acme, globex := newServerClient(t), newServerClient(t)
	globex.Handler = acme.Handler // one server for both
	secret := func(c *client, n apikey.NewKey) string {
		t.Helper()
		n.In, n.Name = c.org, "doc"
		secret, _, err := acme.server.Keys.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	write, admin := apikey.NewKey{Scopes: []string{apikey.Write}}, apikey.NewKey{Scopes: []string{apikey.Admin}}
	vars := map[string]string{"LOCI": "", "ACME": secret(acme, write), "GLOBEX": secret(globex, write),
		"ADMIN_KEY": secret(acme, admin)}
	vars["KEY"] = vars["ACME"]
	for name, key := range map[string]string{"ACME_AGENT": "ACME", "GLOBEX_AGENT": "GLOBEX", "AGENT": "ACME"} {
		got := servertest.Send(acme, "POST", "/v1/agents", `{"name":"support"}`, "Authorization", "Bearer "+vars[key])
		vars[name] = fields(t, got.Text)["id"].(string)
	}
	commands, secrets := 0, 0
	for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
		want := []string{"200"}
		for line := range strings.SplitSeq(strings.ReplaceAll(block[1], "\\\n", ""), "\n") {
			if _, after, ok := strings.Cut(line, "→ "); ok && strings.HasPrefix(line, "#") {
				want = strings.Split(after, ", ")
				continue
			}
			if !strings.HasPrefix(line, "curl ") {
				continue
			}
			commands++
			got := acme.curl(line, vars)
			if len(want[0]) == 3 {
				if got.Code != map[string]int{"200": 200, "403": 403, "404": 404}[want[0]] {
					t.Errorf("%s\nanswers %d %s, want %s", line, got.Code, got.Text, want[0])
				}
				want = []string{"200"}
				continue
			}
			for _, s := range salaries {
				if secrets++; strings.Contains(got.Text, s) != slices.Contains(want, s) {
					t.Errorf("%s\nanswers %d %s, want only %q", line, got.Code, got.Text, want)
				}
			}
			want = []string{"200"}
		}
	}
	if commands < 12 || secrets == 0 {
		t.Errorf("%d commands were run", commands)
	}
}
