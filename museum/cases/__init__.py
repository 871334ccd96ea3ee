"""One bug a file. Each reads alone: verdict, story, timeline, the broken operation, the mended one."""
