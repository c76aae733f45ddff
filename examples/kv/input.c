/* SPDX-License-Identifier: MIT */
#include "input.h"

static void skip_piece(struct input *input)
{
	if (input->piece_bytes > 0)
		weft_stream_skip(input->stream, input->piece_bytes);
	input->piece_bytes = 0;
	input->piece_at = 0;
}

static ssize_t next_piece(struct input *input)
{
	const void *data;
	ssize_t n;

	skip_piece(input);
	n = weft_stream_peek(input->stream, &data);
	if (n > 0) {
		input->piece = data;
		input->piece_bytes = (size_t)n;
	}
	return n;
}

/* The rest of the piece is the begin of the request. */
static int receive_rest(struct input *input, struct request *request)
{
	int r = cut_begin(&input->cut, request->data,
			  input->piece_bytes - input->piece_at);

	skip_piece(input);
	return r < 0 ? r : cut_receive(&input->cut, input->stream, request);
}

int input_next(struct input *input, struct request *request)
{
	ssize_t n = 1;
	int r;

	if (input->cut.bytes > 0)
		cut_end(&input->cut);
	if (input->piece_at == input->piece_bytes)
		n = next_piece(input);
	if (n <= 0)
		return (int)n;
	request_begin(request);
	request->data = input->piece + input->piece_at;
	r = request_parse(request, request->data,
			  input->piece_bytes - input->piece_at);
	if (r == 0)
		return receive_rest(input, request);
	input->piece_at += request->at;
	return r;
}

void input_fini(struct input *input)
{
	cut_fini(&input->cut);
}
