package llmtest

import (
	"net/http"
	"strconv"
	"strings"
)

// Wording is how a provider says that a request is larger than its model's window. In Body, WINDOW and SENT stand for the tokens of both.
type Wording struct {
	Name   string
	Status int
	Body   string
}

// HasWindow says whether the words have the tokens of the window.
func (w Wording) HasWindow() bool { return strings.Contains(w.Body, "WINDOW") }

// HasSent says whether the words have the tokens of the request.
func (w Wording) HasSent() bool { return strings.Contains(w.Body, "SENT") }

// Text is the body for a window and a request.
func (w Wording) Text(window, sent int) string {
	return strings.NewReplacer("WINDOW", strconv.Itoa(window), "SENT", strconv.Itoa(sent)).Replace(w.Body)
}

func (w Wording) write(out http.ResponseWriter, window, sent int) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(w.Status)
	_, _ = out.Write([]byte(w.Text(window, sent)))
}

// Wordings are those that are known, the first of them OpenAI's.
var Wordings = []Wording{
	{"OpenAI", 400, `{"error":{"message":"This model's maximum context length is WINDOW tokens. However, your messages resulted in SENT tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"OpenAI, with functions", 400, `{"error":{"message":"This model's maximum context length is WINDOW tokens. However, your messages resulted in SENT tokens (22394 in the messages, 879 in the functions). Please reduce the length of the messages or functions.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"OpenAI, newer models", 400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
	{"OpenAI, a project's limit", 400, `{"error":{"message":"Input tokens exceed the configured limit of WINDOW tokens. Your messages resulted in SENT tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"OpenAI, more than a minute's tokens", 429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit WINDOW, Requested SENT. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`},
	{"Azure", 400, `{"error":{"code":"context_length_exceeded","message":"This model's maximum context length is WINDOW tokens, however you requested SENT tokens (7000 in your prompt; 2000 for the completion). Please reduce your prompt; or completion length.","param":null,"type":"invalid_request_error","innererror":{}}}`},
	{"Anthropic", 400, `{"error":{"code":"invalid_request_error","message":"prompt is too long: SENT tokens > WINDOW maximum","type":"invalid_request_error","param":null}}`},
	{"Anthropic, escaped by a proxy", 400, `{"error":{"message":"prompt is too long: SENT tokens \u003e WINDOW maximum","type":"invalid_request_error"}}`},
	{"Anthropic, with the answer's limit", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: SENT + 8192 > WINDOW, decrease input length or `max_tokens` and try again\"}}"},
	{"Anthropic, by bytes", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
	{"Bedrock", 400, `{"message":"Input is too long for requested model."}`},
	{"Google", 400, `[{"error":{"code":400,"message":"The input token count (SENT) exceeds the maximum number of tokens allowed (WINDOW).","status":"INVALID_ARGUMENT"}}]`},
	{"Mistral", 400, `{"object":"error","message":"Prompt contains SENT tokens and 0 draft tokens, too large for model with WINDOW maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`},
	{"Groq", 400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	{"Groq, more than a minute's tokens", 413, "{\"error\":{\"message\":\"Request too large for model `llama-3.3-70b-versatile` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit WINDOW, Requested SENT, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}"},
	{"vLLM", 400, `{"object":"error","message":"This model's maximum context length is WINDOW tokens. However, you requested SENT tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`},
	{"vLLM, newer", 400, `{"error":{"message":"This model's maximum context length is WINDOW tokens. However, your request has SENT input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":"input_tokens","code":400}}`},
	{"vLLM, with the answer's limit", 400, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is WINDOW tokens and your request has SENT input tokens (4096 > 8192 - 8500).","type":"BadRequestError","param":null,"code":400}}`},
	{"vLLM, by length", 400, `{"object":"error","message":"The decoder prompt (length SENT) is longer than the maximum model length of WINDOW. Make sure that max_model_len is no smaller than the number of text tokens.","type":"BadRequestError","code":400}`},
	{"SGLang", 400, `{"object":"error","message":"The input (SENT tokens) is longer than the model's context length (WINDOW tokens).","type":"BadRequestError","code":400}`},
	{"SGLang, with the answer's limit", 400, `{"object":"error","message":"Requested token count exceeds the model's maximum context length of WINDOW tokens. You requested a total of SENT tokens: 8000 tokens from the input messages and 1000 tokens for the completion.","type":"BadRequestError","code":400}`},
	{"SGLang, by length", 400, `{"object":"error","message":"Input length (SENT) exceeds model's maximum context length (WINDOW).","type":"BadRequestError","code":400}`},
	{"text-generation-inference", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= WINDOW. Given: SENT `inputs` tokens and 100 `max_new_tokens`\",\"error_type\":\"validation\"}"},
	{"llama.cpp", 400, `{"error":{"code":400,"message":"request (SENT tokens) exceeds the available context size (WINDOW tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":SENT,"n_ctx":WINDOW}}`},
	{"llama.cpp, numbers beside the words", 500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":SENT,"n_ctx":WINDOW}}`},
	{"llama.cpp, without numbers", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"invalid_request_error"}}`},
	{"llama.cpp, with status 200", 200, `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":SENT,"n_ctx":WINDOW}}`},
	{"llama.cpp, a batch", 500, `{"error":{"code":500,"message":"input (SENT tokens) is too large to process. increase the physical batch size (current batch size: 512)","type":"server_error"}}`},
	{"llama-cpp-python", 500, `{"error":{"message":"Requested tokens (SENT) exceed context window of WINDOW","type":"internal_server_error","param":null,"code":null}}`},
	{"llama-cpp-python, with images", 500, `{"error":{"message":"Prompt exceeds n_ctx: SENT > WINDOW","type":"internal_server_error","param":null,"code":null}}`},
	{"Ollama", 400, `{"error":{"message":"prompt too long; exceeded max context length by 4021 tokens","type":"invalid_request_error","param":null,"code":null}}`},
	{"Ollama, without a number", 400, `{"StatusCode":400,"Status":"400 Bad Request","error":"prompt too long; exceeded context length"}`},
	{"Ollama, older", 400, `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`},
	{"LM Studio", 400, `{"error":"Trying to keep the first SENT tokens when context the overflows. However, the model is loaded with context length of only WINDOW tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input. Error Data: n/a, Additional Data: n/a"}`},
	{"LM Studio, newer", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`},
	{"LM Studio, while it writes", 400, `{"error":"Reached context length of WINDOW tokens with model (arch: qwen3vlmoe) that does not currently support mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat."}`},
	{"LM Studio, MLX", 400, `{"error":{"message":"Context size has been exceeded.","type":"internal_error"}}`},
	{"OpenRouter", 400, `{"error":{"message":"This endpoint's maximum context length is WINDOW tokens. However, you requested about SENT tokens (9000 of text input, 500 of tool input, 500 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}`},
	{"OpenRouter, with status 200", 200, `{"error":{"message":"This endpoint's maximum context length is WINDOW tokens. However, you requested about SENT tokens (9000 of text input, 1000 in the output).","code":400}}`},
	{"OpenRouter, a provider's words within", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"This model's maximum context length is WINDOW tokens. However, you requested SENT tokens\"}}","provider_name":"x"}}}`},
	{"xAI", 400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is WINDOW but the request contains SENT tokens."}`},
	{"DeepSeek", 400, `{"error":{"message":"This model's maximum context length is WINDOW tokens. However, you requested SENT tokens (65000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`},
	{"Moonshot", 400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: WINDOW (requested: SENT)","type":"invalid_request_error"}}`},
	{"MiniMax", 400, `{"error":{"message":"invalid params, context window exceeds limit (2013)","type":"bad_request_error"}}`},
	{"Z.AI", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`},
	{"Z.AI, by code", 400, `{"error":{"code":"model_context_window_exceeded","message":"the request failed"}}`},
	{"DashScope", 400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, WINDOW]","type":"invalid_request_error"}}`},
	{"Together", 422, `{"error":{"message":"The input (SENT tokens) is longer than the model's context length (WINDOW tokens).","type":"invalid_request_error","param":null,"code":null}}`},
	{"Fireworks", 400, `{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: SENT, model maximum context length: WINDOW"}}`},
	{"Cerebras", 400, `{"message":"Please reduce the length of the messages or completion. Current length is SENT while limit is WINDOW","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`},
	{"Cohere", 400, `{"message":"too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'."}`},
	{"GitHub Copilot", 400, `{"error":{"message":"prompt token count of SENT exceeds the limit of WINDOW","code":"model_max_prompt_tokens_exceeded"}}`},
	{"GitHub Models", 413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: WINDOW tokens.","details":"Request body too large for gpt-4o model. Max size: WINDOW tokens."}}`},
	{"Cloudflare", 413, `{"errors":[{"message":"AiError: The estimated number of input and maximum output tokens (SENT) exceeded this model context window limit (WINDOW).","code":5021}],"success":false}`},
	{"LiteLLM", 400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - too long","type":null,"param":null,"code":"400"}}`},
	{"a proxy's limit of bytes", 413, `<html><head><title>413 Request Entity Too Large</title></head></html>`},
	{"a proxy without a word", 400, ``},
}
