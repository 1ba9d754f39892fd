package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// shopSession is a conversation about a shop that charges some customers twice. It has results of every length, files
// that are read before and after an edit, repeated previews, errors, thoughts, decisions and pauses. It has about
// 215,000 tokens.
type shopSession struct {
	clip.View
	now     time.Time
	calls   int
	plan    [2]int // positions of the beginning and end of a planned action
	pointed int    // position at which a model would have written a checkpoint
}

func (s *shopSession) add(role recall.Role, parts ...recall.Part) {
	s.now = s.now.Add(8 * time.Second)
	at := len(s.Messages) + 1
	s.Messages = append(s.Messages, recall.Message{ID: fmt.Sprintf("message-%d", at), Seq: int64(at), Position: at,
		Role: role, Content: parts, Tokens: tokensOf(parts), CreatedAt: s.now})
}

func (s *shopSession) user(said string) { s.add(recall.User, text(said)) }

func (s *shopSession) says(said string) { s.add(recall.Assistant, text(said)) }

// does adds an answer with thoughts, words or both, and calls with their results.
func (s *shopSession) does(thinks, words string, uses ...use) {
	var parts []recall.Part
	if thinks != "" {
		parts = append(parts, thought(thinks))
	}
	if words != "" {
		parts = append(parts, text(words))
	}
	results := make([]recall.Part, len(uses))
	for i, u := range uses {
		s.calls++
		id := fmt.Sprintf("call_%02d", s.calls)
		input, err := json.Marshal(u.input)
		if err != nil {
			panic(err)
		}
		parts = append(parts, called(id, u.tool, string(input)))
		results[i] = result(id, u.returns)
		results[i].IsError = u.fails
	}
	s.add(recall.Assistant, parts...)
	s.add(recall.Tool, results...)
}

// use is a tool call and its result.
type use struct {
	tool    string
	input   map[string]any
	returns string
	fails   bool
}

func reads(path, content string) use {
	return use{tool: "read_file", input: map[string]any{"path": path}, returns: content}
}

func runs(command, output string) use {
	return use{tool: "bash", input: map[string]any{"command": command}, returns: output}
}

func failed(u use) use {
	u.fails = true
	return u
}

func edits(path, old, replacement string) use {
	return use{tool: "edit_file", input: map[string]any{"path": path, "old_text": old, "new_text": replacement},
		returns: "The file " + path + " was changed in one place."}
}

// source returns a Go file with this many lines.
func source(path string, lines int) string {
	r := rand.New(rand.NewPCG(uint64(lines), uint64(len(path))))
	verbs, nouns := strings.Fields("load store check charge refund cancel settle record count split"),
		strings.Fields("Order Payment Card Invoice Ledger Attempt Customer Receipt Amount Gateway")
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	var b strings.Builder
	fmt.Fprintf(&b, "// %s\npackage checkout\n\nimport \"context\"\n", path)
	for n := 4; n < lines; n += 9 {
		verb, noun, other := pick(verbs), pick(nouns), pick(nouns)
		fmt.Fprintf(&b, "\n// %s%s %ss the %s of an order that was begun at most %d seconds ago.\n", verb, noun, verb,
			strings.ToLower(noun), 30+r.IntN(900))
		fmt.Fprintf(&b, "func (s *Service) %s%s(ctx context.Context, id string) (%s, error) {\n", verb, noun, other)
		fmt.Fprintf(&b, "\tfound, err := s.store.%s(ctx, id, %d)\n\tif err != nil {\n", other, r.IntN(5000))
		fmt.Fprintf(&b, "\t\treturn %s{}, fmt.Errorf(\"%s %s %%s: %%w\", id, err)\n\t}\n", other, verb, strings.ToLower(noun))
		fmt.Fprintf(&b, "\treturn found.With%s(%d), nil\n}\n", noun, r.IntN(100))
	}
	return b.String()
}

// matches returns output of grep: lines of several files.
func matches(word string, lines int) string {
	r := rand.New(rand.NewPCG(7, uint64(lines)))
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "internal/%s/%s_%02d.go:%d:\tkey := %s(order.ID, attempt%d) // since release %d.%d\n",
			[]string{"checkout", "payments", "billing", "mail"}[n%4], []string{"charge", "client", "retry"}[r.IntN(3)],
			r.IntN(40),
			1+r.IntN(900), word, r.IntN(9), 1+r.IntN(4), r.IntN(30))
	}
	return b.String()
}

// testLog returns output of tests: some lines, and then end.
func testLog(lines int, end string) string {
	r := rand.New(rand.NewPCG(uint64(lines), 3))
	var b strings.Builder
	for range lines {
		fmt.Fprintf(&b, "=== RUN   Test%s/case_%03d\n--- PASS: Test%s/case_%03d (0.%02ds)\n",
			[]string{"Charge", "Refund", "Settle"}[r.IntN(3)], r.IntN(999), []string{"Card", "Bank", "Gift"}[r.IntN(3)],
			r.IntN(999), r.IntN(99))
	}
	return b.String() + end
}

// orders returns rows of a table.
func orders(rows, from int) []map[string]any {
	all := make([]map[string]any, rows)
	for i := range all {
		n := from + i
		all[i] = map[string]any{"order": fmt.Sprintf("SO-%06d", 480_000+n), "cents": 990 + 37*(n%211), "charges": 1 + n%17/16,
			"gateway": []string{"north", "adler"}[n%2], "note": fmt.Sprintf("paid by card ending in %04d", 1009*n%10_000)}
	}
	return all
}

func inJSON(of any) string {
	raw, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// doubleCharges returns the session in a window of this many tokens.
func doubleCharges(window int) *shopSession {
	s := &shopSession{View: clip.View{Window: window, Fixed: 2_400}, now: time.Date(2026, 5, 4, 9, 0, 0, 0,
		time.UTC)}
	s.findTheCause()
	s.mendIt()
	s.now = s.now.Add(12 * time.Minute) // longer than a provider caches a prompt
	s.checkTheOrders()
	s.now = s.now.Add(95 * time.Minute)
	s.writeItDown()
	return s
}

const (
	chargeGo = "internal/checkout/charge.go"
	retryGo  = "internal/checkout/retry.go"
)

var chargeBefore = source(chargeGo, 420)

func (s *shopSession) findTheCause() {
	s.user("Some customers are charged twice for one order, ticket SHOP-4417. Finance counted 212 such orders since " +
		"April " +
		"28. Please find the cause and mend it. Never write to the table ledger: auditors read it. And keep the API of the " +
		"gateway client as it is, the mobile team depends on it.")
	s.does("Charges happen in checkout. I should see where the idempotency key comes from.",
		"I look at how an order is charged.", reads(chargeGo, chargeBefore))
	s.does("", "", runs("grep -rn 'idempotencyKey' internal", matches("idempotencyKey", 720)))
	s.does("", "", use{"query_orders", map[string]any{"where": "charges > 1", "since": "2026-04-28"},
		inJSON(map[string]any{"total": 212, "query": "charges > 1", "rows": orders(640, 0)}), false})
	s.does("The rows look alike: both gateways. I check the table as it is now.", "",
		use{"preview_table", map[string]any{"table": "attempts"}, inJSON(orders(90, 1000)), false})
	s.says("All 212 orders have two attempts within 40 seconds. The second attempt has its own idempotency key, so " +
		"that the " +
		"gateway does not know it for the same. I suspect retryCharge in " + retryGo + ".")
	s.user("That fits: on April 28 we set CHARGE_TIMEOUT to 8s. Is it the retry, then? I would rather not raise the " +
		"timeout again.")
	s.does("Two files at once: the retry, and charge.go once more for the signature.",
		"I read the retry beside the charge.", reads(retryGo, source(retryGo, 260)), reads(chargeGo, chargeBefore))
	s.does("", "", failed(runs("go test ./internal/checkout/...", testLog(420,
		"--- FAIL: TestRetryUsesTheSameKey (0.04s)\n    retry_test.go:88: keys differ: \"SO-480113/1\" and \"SO-480113/2\"\n"+
			"FAIL\nexit code 1\n"))))
}

func (s *shopSession) mendIt() {
	s.plan[0] = len(s.Messages) + 1
	s.does("The key has the attempt's number in it. It must be of the order and the amount only.",
		"The test shows it: the key of "+chargeGo+" ends in the number of the attempt.",
		edits(chargeGo, "key := idempotencyKey(order.ID, attempt)", "key := idempotencyKey(order.ID, order.Cents)\n"+
			strings.Repeat("// The gateway knows a repeated charge by its key: the attempt is no part of it.\n", 24)))
	s.does("", "", failed(runs("go build ./...", "internal/checkout/charge.go:131:34: cannot use order.Cents "+
		"(variable of "+
		"type Cents) as int value in argument to idempotencyKey\nexit status 1\n")))
	s.does("", "", edits(chargeGo, "idempotencyKey(order.ID, order.Cents)", "idempotencyKey(order.ID, int(order.Cents))"))
	s.does("", "", runs("go build ./... && go test ./internal/checkout/...", testLog(60,
		"ok  \tshop/internal/checkout\t2.1s\n")))
	s.does("", "I read the file once more as it is now.", reads(chargeGo, strings.Replace(chargeBefore, "package checkout",
		"package checkout // keys are of the order", 1)))
	s.says("The key is now made of the order and the amount. Tests of checkout pass. Orders that were charged twice are " +
		"not mended by this: shall I list what has to be refunded?")
	s.plan[1] = len(s.Messages)
	s.user("Yes. But decide nothing about gift cards, legal does. We agreed: refunds go through the queue " +
		"refunds-batch, " +
		"at most 50 an hour.")
	s.pointed = len(s.Messages) - 1
	s.does("", "", use{"memory", map[string]any{"command": "create", "path": "/memories/shop-4417.md",
		"file_text": "Refunds: queue refunds-batch, at most 50 an hour. No gift cards."}, "The file was written.", false})
	s.does("", "", use{"preview_table", map[string]any{"table": "attempts"}, inJSON(orders(90, 1100)), false})
	s.does("", "", use{"query_orders", map[string]any{"where": "charges > 1 and gift_card = false"},
		inJSON(orders(300, 2000)), false})
	s.does("", "", reads("docs/refunds.md", source("docs/refunds.md", 300)))
	s.does("The batch size is a constant.", "", use{"grep_files", map[string]any{"pattern": "refunds-batch"},
		matches("refundsBatch", 220), false})
	s.does("", "", runs("go run ./cmd/refunds --dry-run", testLog(500, "total: 198 refunds, 14 gift cards left out\n")))
	s.says("198 orders are to be refunded, 14 of the 212 are gift cards and stay. The dry run is in " +
		"refunds-dry-run.txt; " +
		"its sum is 7,431.62 EUR.")
}

func (s *shopSession) checkTheOrders() {
	s.user("Good. Before it runs: does the gateway adler refuse a refund after 30 days? The oldest order is of April 28.")
	s.does("", "", use{"web_search", map[string]any{"query": "adler gateway refund period"}, matches("refundPeriod",
		260), false})
	s.does("", "", reads("internal/payments/client.go", source("internal/payments/client.go", 620)))
	s.does("", "", reads("internal/payments/refund.go", source("internal/payments/refund.go", 380)))
	s.does("", "", failed(runs("go run ./cmd/refunds --gateway adler --check",
		"refunds: order SO-480207: adler answered 409: "+
			"refund window of 21 days is over since 2026-05-19\nexit status 3\n")))
	s.says("adler refuses refunds after 21 days, not 30. SO-480207 is one of 31 orders that are affected from May 19 on.")
	s.user("Then run those of adler first. Use --order-by oldest.")
	s.does("", "", runs("go run ./cmd/refunds --gateway adler --order-by oldest --limit 50", testLog(700,
		"done: 50 refunds, 0 failed\n")))
	s.does("", "", use{"preview_table", map[string]any{"table": "attempts"}, inJSON(orders(90, 1200)), false})
	s.does("", "", reads(retryGo, source(retryGo, 260)))
	s.does("", "", use{"query_orders", map[string]any{"where": "refunded = true"},
		inJSON(map[string]any{"total": 50, "rows": orders(500, 3000)}), false})
	s.says("50 refunds of adler are through, none failed. The next batch may run at 11:05.")
}

func (s *shopSession) writeItDown() {
	s.user("I am back. Go on with the second batch, then write the report for finance to docs/SHOP-4417.md.")
	s.does("", "", runs("go run ./cmd/refunds --limit 50", testLog(760, "done: 50 refunds, 0 failed\n")))
	s.does("", "", reads("docs/reports/template.md", source("docs/reports/template.md", 520)))
	s.does("", "", runs("git log --stat -n 80", matches("commit", 420)))
	s.does("The report needs the sum, the cause, and the dates.", "", use{"write_file",
		map[string]any{"path": "docs/SHOP-4417.md", "content": "# SHOP-4417\n\n" +
			strings.Repeat("212 orders were charged twice because each attempt had its own idempotency key.\n", 30)},
		"The file docs/SHOP-4417.md was written.", false})
	s.does("", "", runs("go test ./...", testLog(640, "ok  \tshop/...\t14.2s\n")))
	s.says("The second batch is through: 100 of 198 refunds. The report is in docs/SHOP-4417.md.")
	s.user("What was the sum of all refunds, and which orders must not be touched?")
}
