/* SPDX-License-Identifier: MIT */
#include "clients.h"

void clients_join(struct clients *clients, struct client *client, int fd)
{
	pthread_mutex_lock(&clients->lock);
	client->fd = fd;
	client->next = clients->first;
	client->place = &clients->first;
	if (client->next)
		client->next->place = &client->next;
	clients->first = client;
	if (clients->ending)
		weft_shutdown(fd, SHUT_RD);
	pthread_mutex_unlock(&clients->lock);
}

void clients_leave(struct clients *clients, struct client *client)
{
	pthread_mutex_lock(&clients->lock);
	*client->place = client->next;
	if (client->next)
		client->next->place = client->place;
	pthread_mutex_unlock(&clients->lock);
}

void clients_end(struct clients *clients)
{
	pthread_mutex_lock(&clients->lock);
	clients->ending = true;
	for (struct client *at = clients->first; at; at = at->next)
		weft_shutdown(at->fd, SHUT_RD);
	pthread_mutex_unlock(&clients->lock);
}
