package llm

import (
	"cmp"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/sashabaranov/go-openai"

	"github.com/loci-memory/loci/compaction/summary"
)

// wordings match what providers answer to a request larger than the model's window. If the answer names the tokens of
// the window and of the request, the match has them. The first match counts, so wordings with numbers come first.
var wordings = []*regexp.Regexp{
	// OpenAI, Azure, DeepSeek, vLLM, llama-cpp-python, SGLang; OpenRouter says "this endpoint's", Fireworks "model
	// maximum context length".
	regexp.MustCompile(`(?i)maximum context length (?:is|of) (?P<window>[\d,]+)(?: tokens)?(?s:.{0,40}?(?:resulted in|` +
		`you requested(?: a total of)?|your request has|your prompt contains(?: at least)?)(?: about)? (?P<sent>[\d,]+))?`),
	regexp.MustCompile(`(?i)(?:prompt is too long|input length)\s*[:(]?\s*(?P<sent>[\d,]+)\)?,?(?: exceeds)? (?:the ` +
		`)?model(?:'s)? maximum context length:? \(?(?P<window>[\d,]+)`),
	// OpenAI, if the key's project has a limit for the model.
	regexp.MustCompile(`(?i)input tokens exceed the configured limit of (?P<window>[\d,]+) tokens(?s:.{0,40}?resulted ` +
		`in (?P<sent>[\d,]+))?`),
	// OpenRouter, if the prompt alone costs more than the account's credit.
	regexp.MustCompile(`(?i)prompt tokens limit exceeded: (?P<sent>[\d,]+) > (?P<window>[\d,]+)`),
	// OpenAI and Groq, if the request alone has more tokens than a minute allows.
	regexp.MustCompile(`(?i)request too large for(?s:.{0,300}?)limit:? (?P<window>[\d,]+),? requested:? (?P<sent>[\d,]+)`),
	// Anthropic, also through Bedrock and Vertex.
	regexp.MustCompile(`(?i)prompt is too long: (?P<sent>[\d,]+) tokens > (?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)exceed context limit: (?P<sent>[\d,]+) \+ [\d,]+ > (?P<window>[\d,]+)`),
	// Google.
	regexp.MustCompile(`(?i)input token count \(?(?P<sent>[\d,]+)\)? exceeds the maximum number of tokens allowed ` +
		`\(?(?P<window>[\d,]+)`),
	// Mistral.
	regexp.MustCompile(`(?i)prompt contains (?P<sent>[\d,]+) tokens(?s:.{0,60}?)` +
		`too large for model with (?P<window>[\d,]+)`),
	// xAI.
	regexp.MustCompile(`(?i)maximum prompt length is (?P<window>[\d,]+) but the request contains (?P<sent>[\d,]+)`),
	// vLLM, before it applies the chat template to a prompt; and for the answer's limit.
	regexp.MustCompile(`(?i)prompt \(length (?P<sent>[\d,]+)\) is longer than the maximum model length of ` +
		`(?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)longer than the (?:maximum model length|model's context length) of (?P<window>[\d,]+)`),
	// SGLang, Together.
	regexp.MustCompile(`(?i)input \((?P<sent>[\d,]+) tokens\) is longer than the model's context length ` +
		`\((?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)input length (?P<sent>[\d,]+) exceeds the maximum allowed(?: input)? length(?: of)? ` +
		`\(?(?P<window>[\d,]+)`),
	// text-generation-inference.
	regexp.MustCompile("(?i)`?inputs`? (?:tokens \\+ `?max_new_tokens`? )?must (?:be <=|have less than) " +
		"(?P<window>[\\d,]+)(?s:.{0,20}?given: (?P<sent>[\\d,]+))?"),
	// llama.cpp: with numbers in the message; with numbers in other fields (sorted by key: n_ctx first); old versions have
	// none.
	regexp.MustCompile(`(?i)request \((?P<sent>[\d,]+) tokens\) exceeds the available context size \((?P<window>[\d,]+)`),
	regexp.MustCompile(`(?is)exceeds the available context size.*?n_ctx: (?P<window>[\d,]+).*?n_prompt_tokens: ` +
		`(?P<sent>[\d,]+)`),
	regexp.MustCompile(`(?i)exceeds? the available context size|exceed_context_size_error`),
	regexp.MustCompile(`(?i)requested tokens \((?P<sent>[\d,]+)\) exceed context window of (?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)prompt exceeds n_ctx: (?P<sent>[\d,]+) > (?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)input \((?P<sent>[\d,]+) tokens\) is too large to process`),
	// Ollama with truncation turned off, and Ollama's cloud.
	regexp.MustCompile(`(?i)prompt too long; exceeded (?:max )?context length`),
	regexp.MustCompile(`(?i)input (?:length )?exceeds (?:the )?(?:maximum )?context length`),
	// LM Studio.
	regexp.MustCompile(`(?i)keep the first (?P<sent>[\d,]+) tokens when(?s:.{0,80}?)context length of only ` +
		`(?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)reached context length of (?P<window>[\d,]+) tokens`),
	regexp.MustCompile(`(?i)greater than the context length|context size has been exceeded`),
	// GitHub's endpoints, Cerebras, Moonshot, DashScope, Cloudflare, ds4.
	regexp.MustCompile(`(?i)prompt token count of (?P<sent>[\d,]+) exceeds the limit of (?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)request body too large for .{0,60}? max size: (?P<window>[\d,]+) tokens`),
	regexp.MustCompile(`(?i)reduce the length of the messages(?s:.{0,60}?)current length is (?P<sent>[\d,]+) while ` +
		`limit is (?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)exceeded model token limit:? ?(?P<window>[\d,]+)?(?: \(requested: (?P<sent>[\d,]+))?`),
	regexp.MustCompile(`(?i)range of input length should be \[\d+, (?P<window>[\d,]+)\]`),
	regexp.MustCompile(`(?i)input and maximum output tokens \((?P<sent>[\d,]+)\) exceeded this model context window ` +
		`limit \((?P<window>[\d,]+)`),
	regexp.MustCompile(`(?i)prompt has (?P<sent>[\d,]+) tokens?, but the configured context size is (?P<window>[\d,]+)`),
	// Without numbers: OpenAI's code, which others copy; Groq; Bedrock; MiniMax; Z.AI; Anthropic by bytes; Cohere;
	// LiteLLM; others.
	regexp.MustCompile(`(?i)context[_ ]length[_ ]exceeded|context[_ ]window[_ ` +
		`]exceeded|ContextWindowExceeded|string_above_max_length`),
	regexp.MustCompile(`(?i)(?:exceeds?|larger than|longer than|exceeding) (?:the |this )?(?:model'?s? )?(?:maximum ` +
		`)?context (?:window|length|limit|size)`),
	regexp.MustCompile(`(?i)context (?:window|length|size|limit) (?:exceeds|exceeded|is exceeded|overflow)|` +
		`context overflow`),
	regexp.MustCompile(`(?i)reduce the length of the (?:messages|prompt|input)|reduce your prompt`),
	regexp.MustCompile(`(?i)input is too long for (?:the )?requested model|(?:prompt|input) is too long|prompt exceeds ` +
		`max(?:imum)? length`),
	regexp.MustCompile(`(?i)request_too_large|request exceeds the maximum size|too many total text ` +
		`bytes|tokens_limit_reached`),
	regexp.MustCompile(`(?i)too many tokens: size limit exceeded by|token limit exceeded|exceeds the (?:model's ` +
		`)?token limit`),
}

// others match errors about tokens that are no overflow: rate limits, and the limit of the answer's tokens.
var others = regexp.MustCompile(`(?i)rate limit|too many requests|per (?:minute|min|hour|day)\b|quota|wait ` +
	`before|throttl|` +
	`max_(?:completion_)?tokens(?:'|"| )*(?:is|:) too (?:large|high)|completion tokens, whereas`)

// overflows reports whether an answer's body says that the request is too large.
func (c *Client) overflows(status int, body string) bool {
	return overflow(status, words([]byte(body)), c.window, 0) != nil
}

// IsOverflow reports whether an error answer says that a request is larger than its model's window. An error about one
// message that is too long is no overflow, because the others need not get shorter.
func IsOverflow(status int, body []byte) bool {
	text := words(body)
	return !ofOneMessage.MatchString(text) && overflow(status, text, 0, 0) != nil
}

// ofOneMessage matches OpenAI's error about a single text that is too long for any window.
var ofOneMessage = regexp.MustCompile(`(?i)'(?:messages|input)\[\d+\][^']*': string too long`)

// overflow returns an Overflow if a provider's error is about its model's window, otherwise nil. Some providers answer
// with status 500, so the words decide: a known wording, or words about sizes and a number above the model's window. If
// the window is unknown, the number must be above least, the fewest tokens that the request can have. Status 413, and
// status 400 without a body, are also overflows.
func overflow(status int, text string, window, least int) *summary.Overflow {
	if status < http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusNotFound {
		return nil
	}
	passes := others.MatchString(text)
	for _, w := range wordings {
		found := w.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		o := &summary.Overflow{Reason: strings.Join(strings.Fields(found[0]), " ")}
		o.Window, o.Sent = number(w, found, "window"), number(w, found, "sent")
		if !passes || o.Window > 0 && o.Sent > o.Window { // a request with more tokens than a minute allows never succeeds
			return o
		}
	}
	if sent := largestAbove(cmp.Or(window, least), text); !passes && sent > 0 && sizeWords.MatchString(text) {
		return &summary.Overflow{Window: window, Sent: sent, Reason: strings.Join(strings.Fields(text), " ")}
	}
	if status == http.StatusRequestEntityTooLarge || status == http.StatusBadRequest && strings.TrimSpace(text) == "" {
		return &summary.Overflow{Reason: "status " + strconv.Itoa(status) + " without a word of why"}
	}
	return nil
}

// sizeWords match an error about the size of a request in words that are not in wordings.
var sizeWords = regexp.MustCompile(`(?i)tokens?\b|context|prompt|input|length|window|too (?:long|large|big|many)|` +
	`capacity|sequence|limit|maximum|exceed|the most\b|at most|refused|units?\b|pieces?\b|(?:larg|great|long)er than`)

// counts match numbers that may be counts of tokens.
var counts = regexp.MustCompile(`\b\d{1,3}(?:[,. _']\d{3})+\b|\b\d{3,8}\b`)

// mostTokens bounds counts of tokens; larger numbers are times and ids.
const mostTokens = 50_000_000

// largestAbove returns the largest count in a text that is above window; 0 if there is none, or if window is below 1.
func largestAbove(window int, text string) (largest int) {
	for _, digits := range counts.FindAllString(text, -1) {
		n, _ := strconv.Atoi(strings.NewReplacer(",", "", ".", "", " ", "", "_", "", "'", "").Replace(digits))
		if window > 0 && n > window && n <= mostTokens {
			largest = max(largest, n)
		}
	}
	return largest
}

func number(w *regexp.Regexp, found []string, name string) int {
	i := w.SubexpIndex(name)
	if i < 0 {
		return 0
	}
	n, _ := strconv.Atoi(strings.ReplaceAll(found[i], ",", ""))
	return n
}

// These detect a provider, such as Ollama, that cuts a request without an error. A provider that reads a whole request
// counts about one token per word, or more. So it has cut the request if it counts less than readShare of the words. It
// also has if it counts fewer tokens than words and exactly a multiple of roundTokens, because that is such a server's
// window.
const (
	readShare   = 0.6
	roundTokens = 1024
	leastTokens = 1500 // smallest request that is checked
	leastRead   = 256  // a server with a window of 512 keeps half of it; smaller numbers do not count a request
)

// cut reports whether a provider left out a part of a request without an error.
func cut(r summary.Request, usage openai.Usage) bool {
	read := usage.PromptTokens
	if d := usage.PromptTokensDetails; d != nil && d.CachedTokens > read { // some providers do not include cached tokens
		read += d.CachedTokens
	}
	sent := leastTokensOf(r)
	if read < leastRead || sent < leastTokens {
		return false
	}
	return float64(read) < readShare*float64(sent) || read%roundTokens == 0 && read < sent
}

// leastTokensOf returns a lower bound of a request's tokens.
func leastTokensOf(r summary.Request) (n int) {
	for _, m := range r.Messages {
		n += leastCount(m.Content)
	}
	return n
}

// leastCount returns a lower bound of a text's tokens: one for each word or number, and one for three characters of
// scripts without spaces. Spaces and signs do not count, because one token may hold many of them.
func leastCount(text string) int {
	count, dense := 0, 0
	within := false
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			dense++
			within = false
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if !within {
				count++
			}
			within = true
		default:
			within = false
		}
	}
	return count + dense/3
}
